#include "lineage/track/process_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::RecordOp;

collect::Event event(RecordOp op, pid_t process, std::int64_t time, pid_t parent = 0) {
  collect::Event event;
  event.op = op;
  event.process = event.thread = process;
  event.parent = parent;
  event.time_ns = time;
  return event;
}

std::vector<store::ProcessRecord> all(const ProcessList& list) {
  std::vector<store::ProcessRecord> processes;
  list.for_each([&](store::ProcessRecord process) { processes.push_back(std::move(process)); });
  return processes;
}

TEST(ProcessList, ListsAProcessFromBeginningToEnd) {
  ProcessList list(1000);
  list.on_event(event(RecordOp::kProcess, 7, 1010, 3));
  auto exec = event(RecordOp::kExec, 7, 1020, 3);
  exec.path = "/bin/cp";
  exec.other = std::string_view("cp\0a b\0\0-f", 10);
  list.on_event(exec);
  list.on_event(event(RecordOp::kProcess, 7, 1025, 1));  // from the new program; an orphan by now
  auto exit = event(RecordOp::kExit, 7, 1050);
  exit.value = 256;
  list.on_event(exit);
  const auto processes = all(list);
  ASSERT_EQ(processes.size(), 1);
  EXPECT_EQ(processes[0].pid, 7);
  EXPECT_EQ(processes[0].parent, 3);
  EXPECT_EQ(processes[0].program, "/bin/cp");
  EXPECT_THAT(processes[0].arguments, ElementsAre("cp", "a b", "", "-f"));
  EXPECT_EQ(processes[0].started_ns, 10);
  EXPECT_EQ(processes[0].ended_ns, 50);
  EXPECT_EQ(processes[0].wait_status, 256);
}

TEST(ProcessList, ANumberThatComesBackIsAnotherProcess) {
  ProcessList list(0);
  list.on_event(event(RecordOp::kProcess, 7, 1, 3));
  list.on_event(event(RecordOp::kExit, 7, 2));
  list.on_event(event(RecordOp::kRead, 7, 3));  // late
  list.on_event(event(RecordOp::kProcess, 7, 4, 5));
  list.on_event(event(RecordOp::kExit, 7, 6));
  list.on_event(event(RecordOp::kExec, 7, 8, 6));
  const auto processes = all(list);
  ASSERT_EQ(processes.size(), 3);
  EXPECT_EQ(processes[0].ended_ns, 2);
  EXPECT_EQ(processes[1].parent, 5);
  EXPECT_EQ(processes[1].started_ns, 4);
  EXPECT_EQ(processes[2].ended_ns, std::nullopt);
  EXPECT_EQ(processes[2].wait_status, std::nullopt);
}

TEST(ProcessList, AnyEventIntroducesItsProcess) {
  ProcessList list(0);
  list.on_event(event(RecordOp::kRead, 9, 5, 4));
  list.on_event(event(RecordOp::kMissed, 0, 5));
  const auto processes = all(list);
  ASSERT_EQ(processes.size(), 1);
  EXPECT_EQ(processes[0].parent, 4);
  EXPECT_THAT(processes[0].arguments, IsEmpty());
}

TEST(ProcessList, HoldsManyProcesses) {
  ProcessList list(0);
  for (int i = 1; i <= 50'000; ++i) {
    list.on_event(event(RecordOp::kProcess, i % 30'000 + 1, i, 1));
    list.on_event(event(RecordOp::kExit, i % 30'000 + 1, i + 1));
  }
  EXPECT_EQ(list.size(), 50'000);
}

}  // namespace
}  // namespace assay::lineage
