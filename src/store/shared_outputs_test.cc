#include "store/shared_outputs.h"

#include <unistd.h>

#include "base/host_name.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::run_of;

class SharedOutputsTest : public testing::RunsTest {
 protected:
  struct Running {
    RunRecord run;
    std::vector<RunId> overlapping;
  };
  Running begin(const std::string& description, std::vector<std::string> redirects = {}) {
    Running running{.run = run_of(description), .overlapping = {}};
    running.run.redirects = std::move(redirects);
    running.run.status = RunStatus::kRunning;
    running.run.context.host = base::host_name();
    running.run.collector_pid = ::getpid();
    running.run.collector_start_ticks = testing::own_start_ticks();
    running.run.id = *begin_run(store_, running.run);
    running.overlapping = *overlapping_runs(store_, running.run.id);
    return running;
  }
  void end(Running& running) {
    auto writer = RunWriter::begin(store_, running.run.id);
    for (const Output& output : running.run.outputs) ASSERT_TRUE(writer->add_output(output));
    running.run.status = RunStatus::kDone;
    ASSERT_TRUE(writer->note_shared_outputs(running.run, running.overlapping));
    ASSERT_TRUE(writer->finish(running.run));
  }
  std::string missed(RunId run) {
    const RunRecord read = *load_run(store_, run);
    std::string text;
    for (const Missed& missed : read.missed) text += missed.what + ": " + missed.text + "\n";
    EXPECT_EQ(read.complete, text.empty());
    return text;
  }
};

TEST_F(SharedOutputsTest, RunsThatOverlapAreBothNotComplete) {
  Running first = begin("a -> f=1 own=1");
  Running second = begin("b -> f=2");
  Running third = begin("c -> other=1 f=3 -own");
  end(second);
  EXPECT_EQ(missed(second.run.id), "") << "the others may write somewhere else";
  end(first);
  EXPECT_THAT(
      missed(first.run.id),
      HasSubstr("changed: /project/f was also written by run 2, which ran at the same time"));
  EXPECT_THAT(missed(second.run.id), HasSubstr("/project/f was also written by run 1"));
  end(third);
  EXPECT_THAT(missed(third.run.id), HasSubstr("by run 1"));
  EXPECT_THAT(missed(third.run.id), HasSubstr("by run 2"));
  EXPECT_THAT(missed(first.run.id), HasSubstr("by run 3"));
}

TEST_F(SharedOutputsTest, RunsAfterEachOtherAndOtherFilesDoNotCount) {
  Running first = begin("a -> f=1");
  end(first);
  Running second = begin("b -> f=1 g=1");
  Running third = begin("c -> h=1");
  end(second);
  end(third);
  for (const RunId run : {1, 2, 3}) EXPECT_EQ(missed(run), "");
}

// Killed with everything that it had started, and recovered while another run runs.
TEST_F(SharedOutputsTest, ARunWhoseCollectorWasKilledBeforeDoesNotCount) {
  RunRecord killed = run_of("a -> f=1");
  killed.status = RunStatus::kRunning;
  killed.context.host = base::host_name();
  killed.collector_pid = ::getpid();
  killed.collector_start_ticks = testing::own_start_ticks() - 1;  // a process before this one
  Running first{.run = killed, .overlapping = {}};
  first.run.id = *begin_run(store_, killed);
  killed.context.host = "another";
  const RunId elsewhere = *begin_run(store_, killed);
  Running second = begin("b -> f=2");
  EXPECT_THAT(second.overlapping, ElementsAre(elsewhere)) << "which may run";
  end(first);
  end(second);
  for (const RunId run : {first.run.id, second.run.id}) EXPECT_EQ(missed(run), "");
}

TEST_F(SharedOutputsTest, AnySharedStreamOfRunsThatLeaveFilesIsALog) {
  Running first = begin("a -> log=1 x=1", {"1>/project/log"});
  Running second = begin("b -> log=2 y=1", {"1>/project/log"});
  end(first);
  end(second);
  for (const RunId run : {1, 2}) EXPECT_EQ(missed(run), "");
  // Nothing else: it is the result.
  Running third = begin("c -> out=1 -gone", {"1>/project/out"});
  Running fourth = begin("d -> out=2", {"1>/project/out"});
  end(third);
  end(fourth);
  EXPECT_THAT(missed(3), HasSubstr("/project/out was also written by run 4"));
  EXPECT_THAT(missed(4), HasSubstr("/project/out was also written by run 3"));
}

TEST_F(SharedOutputsTest, ASharedLogDoesNotCount) {
  Running first = begin("a -> ~log<1=2 err=1 x=1", {"1>>/project/log", "2>/project/err"});
  Running second = begin("b -> ~log<2=3 err=1 y=1", {"1>>/project/log", "2>/project/err"});
  end(first);
  end(second);
  for (const RunId run : {1, 2}) EXPECT_EQ(missed(run), "");
}

}  // namespace
}  // namespace assay::store
