#include "observe/collect/event/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/temp_dir.h"

namespace assay::collect {
namespace {

class RecordingSink : public EventSink {
 public:
  void on_event(const Event& event) override {
    paths.emplace_back(event.path);
    others.emplace_back(event.other);
    last = event;
  }
  void before_change(std::string_view, const wire::Stamp&, Change) override {}
  std::vector<std::string> paths;
  std::vector<std::string> others;
  Event last;
};

Event read_of(std::string_view path) {
  return {
      .op = wire::RecordOp::kRead, .process = 7, .stamp = {.inode = 5, .size = 3}, .path = path};
}

class LogTest : public ::testing::Test {
 protected:
  base::testing::TempDir dir_;
  std::filesystem::path path_ = dir_.path() / "events";
};

TEST_F(LogTest, ReadsRecordsInTheOrderOfAppending) {
  auto log = EventLog::create(path_);
  ASSERT_TRUE(log) << log.error().line();
  log->append(read_of("/a"));
  log->append({.op = wire::RecordOp::kRename, .value = -2, .path = "/a", .other = "/b"});
  RecordingSink seen;
  EXPECT_EQ(log->drain(seen), 2U);
  EXPECT_EQ(seen.paths, (std::vector<std::string>{"/a", "/a"}));
  EXPECT_EQ(seen.others[1], "/b");
  EXPECT_EQ(seen.last.value, -2);
  EXPECT_EQ(log->drain(seen), 0U);
}

TEST_F(LogTest, CrossesManyWindows) {
  auto log = EventLog::create(path_);
  ASSERT_TRUE(log);
  RecordingSink seen;
  const std::string text(3000, 'x');
  for (int i = 0; i < 20000; ++i) {
    log->append(read_of(std::to_string(i) + text));
    if (i % 1000 == 0) log->drain(seen);
  }
  log->drain(seen);
  ASSERT_EQ(seen.paths.size(), 20000U);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(seen.paths[static_cast<std::size_t>(i)], std::to_string(i) + text);
  }
}

TEST_F(LogTest, WhatWasCommittedIsThereAfterTheCollectorWasKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto log = EventLog::create(path_);
    for (int i = 0; i < 1000; ++i) log->append(read_of("/file" + std::to_string(i)));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  auto log = EventLog::open(path_);
  ASSERT_TRUE(log) << log.error().line();
  RecordingSink seen;
  EXPECT_EQ(log->finish(seen), 1000U);
  EXPECT_EQ(seen.paths.back(), "/file999");
  EXPECT_EQ(log->torn(), 0U);
}

// A writer that reserved and died, at each stage it can have reached.
TEST_F(LogTest, StepsOverRecordsOfKilledWriters) {
  auto log = EventLog::create(path_);
  ASSERT_TRUE(log);
  log->append(read_of("/before"));
  const wire::Reservation unwritten = wire::reserve(log->header(), 320);
  log->append(read_of("/between"));
  const wire::Reservation reserved = wire::reserve(log->header(), 128);
  log->append(read_of("/after"));
  ASSERT_NE(unwritten.offset, 0U);
  auto window = std::make_unique<LogWindow>();
  const int fd = ::open(path_.c_str(), O_RDWR);
  auto* record =
      reinterpret_cast<wire::Record*>(window->at(fd, PROT_READ | PROT_WRITE, reserved.offset));
  record->word = wire::record_word(wire::State::kReserved, 128);
  ::close(fd);
  RecordingSink seen;
  EXPECT_EQ(log->drain(seen), 1U) << "a living writer might still finish it";
  EXPECT_EQ(log->finish(seen), 2U);
  EXPECT_EQ(seen.paths, (std::vector<std::string>{"/before", "/between", "/after"}));
  EXPECT_EQ(log->torn(), 2U);
}

TEST_F(LogTest, RefusesWhatIsNoLog) {
  EXPECT_FALSE(EventLog::open(path_));
  std::ofstream(path_) << std::string(10000, 'z');
  const auto log = EventLog::open(path_);
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().line(), ::testing::HasSubstr("is not an event log"));
}

// Whatever the command writes over the log, reading it terminates and stays within bounds.
RC_GTEST_FIXTURE_PROP(LogTest, SurvivesScribbling, ()) {
  std::filesystem::remove(path_);
  auto log = EventLog::create(path_);
  RC_ASSERT(log.has_value());
  for (int i = 0; i < 50; ++i) log->append(read_of("/file" + std::to_string(i)));
  {
    const base::UniqueFd fd(::open(path_.c_str(), O_RDWR));
    for (int i = 0; i < 20; ++i) {
      const auto offset = *rc::gen::inRange<off_t>(4096, 4096 + 50 * 128);
      const auto word = *rc::gen::oneOf(
          rc::gen::arbitrary<std::uint64_t>(),
          rc::gen::map(rc::gen::inRange<std::uint32_t>(0, 4096), [](std::uint32_t length) {
            return wire::record_word(wire::State::kCommitted, length * 8);
          }));
      RC_ASSERT(::pwrite(fd.get(), &word, sizeof word, offset / 8 * 8) == 8);
    }
  }
  if (*rc::gen::arbitrary<bool>()) log->header().tail = *rc::gen::arbitrary<std::uint64_t>();
  RecordingSink seen;
  log->finish(seen);
}

}  // namespace
}  // namespace assay::collect
