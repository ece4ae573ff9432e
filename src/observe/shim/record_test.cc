// What the shim records, and that nothing is lost between it and the gate.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>

#include "observe/shim/testing/workspace.h"

namespace assay::shim::testing {
namespace {

using ::testing::ElementsAre;
using wire::RecordOp;
using Event = std::pair<RecordOp, std::string>;

class Record : public ::testing::Test {
 protected:
  std::vector<Event> events(const ShimLog& log) const {
    std::vector<Event> found;
    for (const LoggedEvent& seen : log.records()) found.emplace_back(seen.op, seen.path);
    return found;
  }
  // What the gate stopped after the loader had done its work.
  static std::vector<std::string> stopped(const ShimRunResult& outcome) {
    std::vector<std::string> paths;
    for (const StoppedCall& stop : outcome.stops) {
      if (stop.path.find(".so") == std::string::npos) paths.push_back(stop.path);
    }
    return paths;
  }
  static void wait_for_records(ShimLog& log) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (log.header().tail == wire::kHeaderSize && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }
  ShimWorkspace workspace_;
  int times_ = 0;
};

TEST_F(Record, EveryWayToNameAFile) {
  const auto log = workspace_.new_log();
  const ShimRunResult outcome = run(workspace_.traced_probe(*log, {"places"}));
  ASSERT_EQ(outcome.wait_status, 0) << outcome.output;
  const auto at = [&](const char* name) { return workspace_.path(name); };
  EXPECT_THAT(
      events(*log),
      ElementsAre(
          Event(RecordOp::kRead, at("file")), Event(RecordOp::kRead, at("readonly")),
          Event(RecordOp::kRead, at("link")), Event(RecordOp::kRead, at("file")),
          Event(RecordOp::kRead, at("folder/file")),
          Event(RecordOp::kCreate, at("folder/../folder/made")),
          Event(RecordOp::kRead, at("folder/file")), Event(RecordOp::kCreate, at("made")),
          Event(RecordOp::kRead, at("folder/./file")), Event(RecordOp::kCreate, at("stream")),
          Event(RecordOp::kRead, at("folder/made")), Event(RecordOp::kRead, at("folder/made")),
          Event(RecordOp::kRead, at("folder/made")), Event(RecordOp::kRead, at("folder/file"))));
  EXPECT_THAT(stopped(outcome), ElementsAre("dangling", "file"));
  EXPECT_EQ(log->header().dropped, 0U);
}

TEST_F(Record, NamesThatAreNotThereAndFoldersThatAreListed) {
  const auto log = workspace_.new_log();
  const ShimRunResult outcome = run(workspace_.traced_probe(*log, {"names"}));
  EXPECT_EQ(outcome.output, run(workspace_.probe({"names"})).output);
  const auto at = [&](const char* name) { return workspace_.path(name); };
  EXPECT_THAT(
      events(*log),
      ElementsAre(Event(RecordOp::kAbsent, at("nothing")), Event(RecordOp::kAbsent, at("no/where")),
                  Event(RecordOp::kQueried, at("folder")), Event(RecordOp::kQueried, at("file")),
                  Event(RecordOp::kList, at("folder")), Event(RecordOp::kList, at("folder")),
                  Event(RecordOp::kAbsent, at("neither")),
                  // By a name in a directory, once in each.
                  Event(RecordOp::kAbsent, at("folder/neither")),
                  Event(RecordOp::kAbsent, at("folder/none")),
                  Event(RecordOp::kAbsent, at("neither")), Event(RecordOp::kAbsent, at("none"))));
}

TEST_F(Record, AnOpenFolderHasTheNameThatItHasNow) {
  const auto log = workspace_.new_log();
  Command command = workspace_.traced_probe(*log, {"moved folder"});
  command.before = [&](const StoppedCall& stop) {
    if (stop.number == SYS_rename) ++log->header().epoch;
    return true;
  };
  ASSERT_EQ(run(command).wait_status, 0);
  std::vector<std::string> read;
  for (const auto& [op, path] : events(*log)) {
    if (op == RecordOp::kRead) read.push_back(path);
  }
  const auto at = [&](const char* name) { return workspace_.path(name); };
  EXPECT_THAT(read, ElementsAre(at("folder/inner/file"), at("folder/inner/file"), at("folder/file"),
                                at("folder/inner/file"), at("other/inner/file"), at("other/file"),
                                at("other/outer/file")));
}

// What a process has just created has no content that must be hashed before its times change.
TEST_F(Record, TimesOfANewFileAreSetWithoutAStop) {
  const auto log = workspace_.new_log();
  Command command = workspace_.traced_probe(*log, {"times"});
  command.before = [&](const StoppedCall& stop) {
    if (stop.number == SYS_utimensat) ++times_;
    return true;
  };
  const ShimRunResult outcome = run(command);
  EXPECT_EQ(outcome.output, run(workspace_.probe({"times"})).output);
  // Of "file", and of the descriptor that is not open.
  EXPECT_EQ(times_, 2);
}

TEST_F(Record, TheStampIsTheFiles) {
  const auto log = workspace_.new_log();
  run(workspace_.traced_probe(*log, {"repeated", "1"}));
  const auto records = log->records();
  ASSERT_EQ(records.size(), 1U);
  struct stat status {};
  stat(workspace_.path("file").c_str(), &status);
  const auto ns = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  EXPECT_EQ(records[0].stamp,
            (wire::Stamp{status.st_dev, status.st_ino, 7, ns(status.st_mtim), ns(status.st_ctim)}));
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  EXPECT_LT(records[0].time_ns, ns(now));
  EXPECT_GT(records[0].time_ns, ns(now) - std::int64_t{60} * 1'000'000'000);
}

TEST_F(Record, ARepeatedReadIsRecordedOnceInEveryEpoch) {
  const auto log = workspace_.new_log();
  Command command = workspace_.traced_probe(*log, {"repeated", "1000"});
  EXPECT_EQ(run(command).wait_status, 0);
  EXPECT_THAT(events(*log), ElementsAre(Event(RecordOp::kRead, workspace_.path("file"))));

  const auto second = workspace_.new_log();
  command = workspace_.traced_probe(*second, {"repeated", "1000"});
  command.before = [&](const StoppedCall& stop) {
    if (stop.path == "folder/file") ++second->header().epoch;
    return true;
  };
  EXPECT_EQ(run(command).wait_status, 0);
  EXPECT_EQ(second->records().size(), 2U);
}

// The probe prints who it is after each open; records must say the same. Processes that were made
// by fork, vfork and a clone of their own each record what they read, though another did before.
TEST_F(Record, EveryProcessAndThreadByItsNumber) {
  const auto log = workspace_.new_log();
  const ShimRunResult outcome = run(workspace_.traced_probe(*log, {"family"}));
  ASSERT_EQ(outcome.wait_status, 0);
  std::istringstream lines(outcome.output);
  std::vector<std::tuple<std::string, pid_t, pid_t>> expected;
  std::map<pid_t, pid_t> parents;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line.substr(line.find_last_not_of("0123456789 ") + 1));
    const std::string name = line.substr(0, line.find_last_not_of("0123456789 ") + 1);
    pid_t process = 0;
    pid_t parent = 0;
    pid_t thread = 0;
    numbers >> process >> parent >> thread;
    expected.emplace_back(workspace_.path(name), process, thread);
    parents[process] = parent;
  }
  ASSERT_EQ(expected.size(), 6U);
  std::vector<std::tuple<std::string, pid_t, pid_t>> found;
  std::set<pid_t> seen_first;
  std::set<pid_t> ended;
  for (const LoggedEvent& seen : log->records(nullptr, ShimLog::Kind::kProcesses)) {
    if (seen.op == wire::RecordOp::kExit) {
      EXPECT_EQ(seen.value, 0);
      ended.insert(seen.process);
    } else if (seen_first.insert(seen.process).second) {
      EXPECT_EQ(seen.parent, parents[seen.process]);  // forked
    }
  }
  EXPECT_THAT(ended, ::testing::IsSupersetOf(seen_first));
  for (const LoggedEvent& seen : log->records()) {
    if (seen.path != workspace_.path("readonly")) {
      found.emplace_back(seen.path, seen.process, seen.thread);
    }
    if (seen_first.insert(seen.process).second) {
      EXPECT_EQ(seen.parent, parents[seen.process]);
    }
  }
  EXPECT_EQ(found, expected);
}

// Records of 4 KiB, so that threads go through windows at the same time.
TEST_F(Record, ThreadsThroughManyWindows) {
  const auto log = workspace_.new_log();
  const ShimRunResult outcome =
      run(workspace_.traced_probe(*log, {"threads", "8", "1500", "3900"}));
  ASSERT_EQ(outcome.wait_status, 0) << outcome.output;
  int torn = 0;
  std::set<std::string> paths;
  const auto records = log->records(&torn);
  for (const LoggedEvent& seen : records) {
    paths.insert(seen.path);
    ASSERT_EQ(seen.path.substr(seen.path.size() - 5), "/file");
  }
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(records.size(), 12000U);
  EXPECT_EQ(paths.size(), 12000U);
  EXPECT_EQ(log->header().dropped, 0U);
  EXPECT_GT(log->header().tail, 10 * wire::kWindowSize);
}

TEST_F(Record, InSignalHandlers) {
  const auto log = workspace_.new_log();
  const ShimRunResult outcome = run(workspace_.traced_probe(*log, {"signals"}));
  ASSERT_EQ(outcome.wait_status, 0) << outcome.output;
  const auto made = static_cast<std::size_t>(std::stoi(outcome.output));
  EXPECT_GT(made, 10U);
  std::size_t creates = 0;
  std::size_t reads = 0;
  int torn = 0;
  for (const LoggedEvent& seen : log->records(&torn))
    (seen.op == RecordOp::kCreate ? creates : reads) += 1;
  EXPECT_EQ(creates, made);
  EXPECT_EQ(reads, 20000U);
  EXPECT_EQ(torn, 0);
}

// What the shim cannot record, the gate sees: every open is known to one of the two.
TEST_F(Record, AFullLogLosesNothing) {
  const auto log = workspace_.new_log(wire::kMaxRecordSize + std::size_t{100'000});
  const ShimRunResult outcome = run(workspace_.traced_probe(*log, {"threads", "4", "1000", "50"}));
  ASSERT_EQ(outcome.wait_status, 0) << outcome.output;
  const auto recorded = log->records();
  std::set<std::string> all;
  for (const LoggedEvent& seen : recorded) all.insert(seen.path);
  for (const std::string& path : stopped(outcome)) all.insert(workspace_.path(path));
  EXPECT_GT(recorded.size(), 100U);
  EXPECT_LT(recorded.size(), 4000U);
  EXPECT_EQ(all.size(), 4000U);
  EXPECT_EQ(log->header().dropped, 0U);
}

TEST_F(Record, ALogWithoutANameGoesOn) {
  const auto log = workspace_.new_log();
  Command command = workspace_.traced_probe(*log, {"threads", "2", "2000", "3900"});
  std::thread remover;
  command.started = [&](pid_t) {
    remover = std::thread([&] {
      wait_for_records(*log);
      std::filesystem::remove(log->path());
    });
  };
  EXPECT_EQ(run(command).wait_status, 0);
  remover.join();
  EXPECT_FALSE(std::filesystem::exists(log->path()));
  EXPECT_EQ(log->records().size(), 4000U);
}

TEST_F(Record, AKilledProgramLeavesAReadableLog) {
  for (const int after_ms : {1, 2, 3, 5, 8, 13, 21}) {
    const auto log = workspace_.new_log();
    Command command = workspace_.traced_probe(*log, {"threads", "8", "1000000", "200"});
    std::thread killer;
    command.started = [&](pid_t process) {
      killer = std::thread([&, process] {
        wait_for_records(*log);
        std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
        kill(process, SIGKILL);
      });
    };
    const ShimRunResult outcome = run(command);
    killer.join();
    EXPECT_TRUE(WIFSIGNALED(outcome.wait_status));
    int torn = 0;
    const auto records = log->records(&torn);
    EXPECT_FALSE(records.empty());
    for (const LoggedEvent& seen : records) {
      ASSERT_EQ(seen.op, RecordOp::kRead);
      ASSERT_EQ(seen.stamp.size, 7);
      ASSERT_EQ(seen.path.substr(seen.path.size() - 6), "./file");
    }
    EXPECT_LE(torn, 8 * 8) << "at most one record of each thread, in steps of the alignment";
  }
}

TEST_F(Record, BeforeConstructorsAndAfterDestructors) {
  const auto log = workspace_.new_log();
  Command command = workspace_.traced_probe(*log, {"edges"});
  command.library += ":" ASSAY_EARLY;
  const ShimRunResult outcome = run(command);
  EXPECT_EQ(outcome.wait_status, 0) << outcome.output;
  // A preinit function runs before the environment is available: the gate sees it.
  EXPECT_THAT(stopped(outcome), ElementsAre("file"));
  EXPECT_THAT(events(*log), ElementsAre(Event(RecordOp::kRead, workspace_.path("folder/file")),
                                        Event(RecordOp::kRead, workspace_.path("readonly"))));
}

// There a path means another file than it does outside.
TEST_F(Record, UnderAnotherRootTheGateSeesAll) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can change the root";
  const auto log = workspace_.new_log();
  const ShimRunResult outcome = run(workspace_.traced_probe(*log, {"rooted"}));
  ASSERT_EQ(outcome.wait_status, 0);
  EXPECT_TRUE(log->records().empty());
  EXPECT_THAT(stopped(outcome),
              ::testing::IsSupersetOf({std::string("/file"), std::string("made")}));
}

TEST_F(Record, AShellAndItsChildren) {
  const auto log = workspace_.new_log();
  Command command = workspace_.traced_probe(*log, {});
  command.arguments = {"/bin/sh", "-c", "cat file readonly > made; cat < made | cat > made2"};
  ASSERT_EQ(run(command).wait_status, 0);
  std::set<Event> found;
  for (const Event& event : events(*log)) found.insert(event);
  for (const Event& event : {Event(RecordOp::kRead, workspace_.path("file")),
                             Event(RecordOp::kRead, workspace_.path("readonly")),
                             Event(RecordOp::kCreate, workspace_.path("made")),
                             Event(RecordOp::kRead, workspace_.path("made")),
                             Event(RecordOp::kCreate, workspace_.path("made2"))}) {
    EXPECT_TRUE(found.contains(event)) << name_of(event.first) << ' ' << event.second;
  }
  EXPECT_GE(log->header().shims, 4U);
}

}  // namespace
}  // namespace assay::shim::testing
