// The preload collector with real commands: which events the sink receives, and that the command is
// not affected. tests/oracle checks that no event is missing.
#include "observe/collect/gate/preload.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "base/testing/temp_dir.h"

namespace assay::collect {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class Recording : public EventSink {
 public:
  void on_event(const Event& event) override {
    events.emplace_back(wire::name_of(event.op), std::string(event.path));
    processes.insert(event.process);
  }
  void before_change(std::string_view path, const wire::Stamp& stamp, Change) override {
    changes.emplace_back(std::string(path), stamp.size);
  }
  std::vector<std::pair<std::string, std::string>> events;
  std::vector<std::pair<std::string, std::int64_t>> changes;
  std::set<pid_t> processes;
};

class PreloadTest : public ::testing::Test {
 protected:
  PreloadTest() { work_ = std::filesystem::canonical(dir_.path()); }
  base::Result<CollectorResult> run(std::vector<std::string> arguments) {
    auto collector = make_preload_collector(work_ / ("log" + std::to_string(runs_++)));
    return collector->run({std::move(arguments), environment_, work_}, control_, sink_);
  }
  std::string in_work(const std::string& name) { return (work_ / name).string(); }

  base::testing::TempDir dir_;
  std::filesystem::path work_;
  base::Environment environment_ = base::Environment::from_current();
  int runs_ = 0;
  CollectorCallbacks control_;
  Recording sink_;
};

TEST_F(PreloadTest, ReportsReadsCreationsAndChanges) {
  std::ofstream(work_ / "in") << "12345";
  std::ofstream(work_ / "old") << "123";
  const auto outcome = run({"sh", "-c", "cat in > out; echo x > old; mv out moved; rm in"});
  ASSERT_TRUE(outcome) << outcome.error().line();
  EXPECT_EQ(outcome->wait_status, 0);
  EXPECT_EQ(outcome->dropped, 0U);
  EXPECT_THAT(outcome->missed, IsEmpty());
  EXPECT_THAT(sink_.events, Contains(Pair("read", in_work("in"))));
  EXPECT_THAT(sink_.events, Contains(Pair("create", in_work("out"))));
  EXPECT_THAT(sink_.events, Contains(Pair("truncate", in_work("old"))));
  EXPECT_THAT(sink_.events, Contains(Pair("rename", in_work("out"))));
  EXPECT_THAT(sink_.events, Contains(Pair("delete", in_work("in"))));
  EXPECT_THAT(sink_.changes, Contains(Pair(in_work("old"), 3)));
  EXPECT_THAT(sink_.changes, Contains(Pair(in_work("in"), 5)));
  EXPECT_GE(sink_.processes.size(), 3U);
}

TEST_F(PreloadTest, PassesTheStatusOn) {
  const auto code = run({"sh", "-c", "exit 42"});
  ASSERT_TRUE(code);
  EXPECT_EQ(WEXITSTATUS(code->wait_status), 42);
  const auto signal = run({"sh", "-c", "kill -9 $$"});
  ASSERT_TRUE(signal);
  EXPECT_EQ(WTERMSIG(signal->wait_status), SIGKILL);
}

TEST_F(PreloadTest, WaitsForWhatTheCommandLeftRunning) {
  int ended = 0;
  control_.ended = [&](int) { ended = static_cast<int>(sink_.events.size()); };
  const auto outcome = run({"sh", "-c", "(sleep 0.2; echo late > late) & exit 3"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome->wait_status), 3);
  EXPECT_THAT(sink_.events, Contains(Pair("create", in_work("late"))));
  EXPECT_LT(ended, static_cast<int>(sink_.events.size()));
}

TEST_F(PreloadTest, ReportsWhatCannotBeStarted) {
  const auto missing = run({"no-such-program-anywhere"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().line(), ::testing::HasSubstr("command not found"));
  std::ofstream(work_ / "plain") << "x";
  const auto plain = run({in_work("plain")});
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().line(),
              ::testing::HasSubstr("Permission denied; make it executable (chmod +x)"));
}

TEST_F(PreloadTest, KeepsTheCommandGoingWhenAbandoned) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  int abandoned = 0;
  control_.keeper = ends[0];
  control_.abandoned = [&] { ++abandoned; };
  control_.started = [&](pid_t, int) { ::close(ends[1]); };
  const auto outcome = run({"sh", "-c", "sleep 0.3; echo x > unseen; exit 5"});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome->wait_status), 5);
  EXPECT_EQ(abandoned, 1);
  EXPECT_THAT(sink_.events, Not(Contains(Pair("create", in_work("unseen")))));
  EXPECT_TRUE(std::filesystem::exists(work_ / "unseen"));
  ::close(ends[0]);
}

TEST_F(PreloadTest, ThePreflightSucceedsHere) {
  const Preflight preflight = preload_preflight();
  EXPECT_TRUE(preflight.available) << preflight.reason;
}

}  // namespace
}  // namespace assay::collect
