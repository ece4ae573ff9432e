// Files whose full path is longer than PATH_MAX: the call continues, and the file is reported as
// missed. Calls that the kernel refuses because a name is too long are ignored.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "observe/collect/process/inherited.h"
#include "observe/collect/testing/effect_test.h"
#include "observe/collect/testing/recorder.h"

namespace assay::collect::testing {
namespace {

class LongPathEffect : public EffectTest {
 protected:
  // In the child: into a directory whose path has `length` bytes, or is just longer than PATH_MAX.
  void go_down(std::size_t length) const {
    ASSERT_EQ(::chdir(place.path().c_str()), 0);
    for (std::size_t at = place.path().size(); at < length;) {
      const std::size_t rest = length - at - 1;
      const std::string name(rest > 202 ? 200 : rest, 'p');
      ::mkdir(name.c_str(), 0755);
      ASSERT_EQ(::chdir(name.c_str()), 0);
      at += 1 + name.size();
    }
  }
  static void put(const char* name, mode_t mode = 0755) {
    const int fd = ::open(name, O_WRONLY | O_CREAT, mode);
    ASSERT_EQ(::write(fd, "#!/bin/true\n", 12), 12);
    ::close(fd);
  }
  // The events of `act` in that directory: "opened deep".
  std::string missed(
      const std::function<void()>& act, const std::function<void()>& more = [] {},
      std::size_t length = PATH_MAX + 500) {
    effect_lines(act, [&, length] {
      go_down(length);
      put("deep");
      more();
    });
    if (!place.seen.effect) return "nothing";
    EXPECT_TRUE(place.seen.effect->changes.empty());
    const auto& all = place.seen.effect->events;
    if (all.size() != 1 || all[0].op != wire::RecordOp::kMissed || all[0].path != "long-path") {
      return "no gap";
    }
    EXPECT_THAT(all[0].other,
                ::testing::MatchesRegex("/.* \\(process [0-9]+\\) [a-z]+ [^ ]+, whose .*"));
    const std::size_t begin = all[0].other.find(") ") + 2;
    const std::string did = all[0].other.substr(begin, all[0].other.find(',') - begin);
    return place.seen.effect->will_succeed ? did : did + " fails";
  }
  std::string opened(const std::string& path, int flags) {
    return missed([&, flags] { ::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, 0644); });
  }
};

TEST_P(LongPathEffect, OpensAreReportedAsMissed) {
  EXPECT_EQ(opened("deep", O_RDONLY), "opened deep");
  EXPECT_EQ(opened("./deep", O_WRONLY | O_APPEND), "opened ./deep");
  EXPECT_EQ(opened("deep", O_WRONLY | O_TRUNC), "cut deep");
  EXPECT_EQ(opened("new", O_WRONLY | O_CREAT), "made new");
  EXPECT_EQ(missed([] { ::syscall(SYS_truncate, "deep", 3); }), "cut deep");
  EXPECT_EQ(missed([] { ::syscall(SYS_mknod, "node", S_IFREG | 0644, 0); }), "made node");
}

TEST_P(LongPathEffect, WhatFailsIsNotMissed) {
  const std::string long_name(NAME_MAX + 1, 'x');
  EXPECT_EQ(opened("none", O_RDONLY), "nothing");
  EXPECT_EQ(opened(long_name, O_RDONLY), "nothing");
  EXPECT_EQ(opened(long_name, O_WRONLY | O_CREAT), "nothing");
  EXPECT_EQ(opened("none/new", O_WRONLY | O_CREAT), "nothing");
  EXPECT_EQ(opened("deep", O_WRONLY | O_CREAT | O_EXCL), "opened deep fails");
  EXPECT_EQ(opened(".", O_RDONLY), "nothing");
  EXPECT_EQ(opened(std::string(PATH_MAX, '/') + "etc/passwd", O_RDONLY), "nothing");
}

TEST_P(LongPathEffect, NamesAndPrograms) {
  EXPECT_EQ(missed([] { ::syscall(SYS_unlink, "deep"); }), "removed deep");
  EXPECT_EQ(missed([] { ::syscall(SYS_unlink, "none"); }), "nothing");
  EXPECT_EQ(missed([] { ::syscall(SYS_rename, "deep", "other"); }), "renamed deep");
  EXPECT_EQ(missed([] { ::syscall(SYS_link, "deep", "second"); }), "linked deep");
  const std::string up = place.path("up");
  EXPECT_EQ(missed([&] { ::syscall(SYS_link, "deep", up.c_str()); }), "linked deep");
  EXPECT_EQ(missed([&] { ::syscall(SYS_rename, up.c_str(), "down"); }), "renamed " + up);
  EXPECT_EQ(missed([] {
              const char* const arguments[] = {"deep", nullptr};
              ::syscall(SYS_execve, "deep", arguments, nullptr);
            }),
            "ran deep");
}

TEST_P(LongPathEffect, TheLimitIsThatOfThePathAsAWhole) {
  // Exactly at the limit, by a name in a directory with a known path.
  const std::size_t folder = PATH_MAX - 10;
  const auto made = [&](const std::string& name) {
    return missed([&] { ::syscall(SYS_openat, AT_FDCWD, name.c_str(), O_WRONLY | O_CREAT, 0644); },
                  [] {}, folder);
  };
  EXPECT_EQ(made("12345678"), "no gap");
  EXPECT_EQ(made("123456789"), "made 123456789");
  EXPECT_EQ(made("123456789"), "opened 123456789") << "now it is there";
}

TEST_P(LongPathEffect, AFolderThatIsOpenLeadsThereAsWell) {
  EXPECT_EQ(missed([] { ::syscall(SYS_openat, 9, "deep", O_RDONLY); },
                   [] {
                     ::dup2(::open(".", O_RDONLY | O_DIRECTORY), 9);
                     ASSERT_EQ(::chdir("/"), 0);
                   }),
            "opened deep");
}

TEST_P(LongPathEffect, AnInheritedOpenFileIsReported) {
  const base::UniqueFd here(::open(".", O_PATH | O_CLOEXEC));
  go_down(PATH_MAX + 500);
  put("deep");
  const base::UniqueFd deep(::open("deep", O_RDONLY));
  ASSERT_EQ(::fchdir(here.get()), 0);
  const base::testing::TempDir logs;
  auto log = EventLog::create(logs.path() / "log");
  ASSERT_TRUE(log);
  append_inherited(inherited_files(), 1, *log);
  EventRecorder recorder;
  log->drain(recorder);
  const auto missed = recorder.of(wire::RecordOp::kMissed);
  ASSERT_EQ(missed.size(), 1U);
  EXPECT_EQ(missed[0].path, "long-path");
  EXPECT_THAT(missed[0].other,
              ::testing::HasSubstr("as descriptor " + std::to_string(deep.get()) + ", whose"));
}

INSTANTIATE_TEST_SUITE_P(BothWays, LongPathEffect, ::testing::Bool(), way);

}  // namespace
}  // namespace assay::collect::testing
