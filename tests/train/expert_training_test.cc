// Whole runs of a mixture whose experts are spread over ranks: what one rank trains, lists and
// plans kept to, processes as threads, checkpoints that any other layout goes on from.
#include "comm/testing/rank_processes.h"
#include "train/ranks.h"

namespace assay::train {
namespace {

spec::JobSpec mixture_job() {
  spec::JobSpec job = tiny_job();
  job.train.steps = 6;
  job.model.layers = 3;
  job.model.dense_layers = 1;
  job.model.experts = 4;
  job.model.experts_per_token = 2;
  job.model.expert_ffn = 24;
  job.model.shared_ffn = 16;
  job.model.router = spec::Router::kSigmoid;
  job.train.balance_rate = 1e-3;
  return job;
}

TEST_F(RanksTest, SpreadExpertsTrainWhatOneRankTrains) {
  const spec::JobSpec job = mixture_job();
  const RanksResult one = run_ranks(job, 1, {.out = "alone"});
  ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
  for (const Spread& over : std::vector<Spread>{
           {.ep = 2},
           {.zero = 3, .ep = 4},
           {.dp = 2, .fsdp = 3, .zero = 3, .ep = 2},
           {.fsdp = 2, .zero = 2, .pp = 2, .ep = 2},
           {.tp = 2, .sp = true, .ep = 2},
       }) {
    SCOPED_TRACE(over.text());
    const std::string out = over.text();
    std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
    const RanksResult many = run_spread(job, over, {.out = out}, [&](Rank& rank) {
      rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())];
    });
    ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
    for (const RecordingReporter& reporter : many.reporters) {
      ASSERT_EQ(reporter.reports.size(), 6U);
      for (std::size_t i = 0; i < 6; ++i) {
        const StepReport& found = reporter.reports[i];
        const StepReport& expected = one.reporters[0].reports[i];
        EXPECT_NEAR(found.loss, expected.loss, 2e-5 * expected.loss);
        EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 2e-4 * expected.gradient_norm);
        EXPECT_EQ(found.tokens, expected.tokens);
      }
    }
    expect_close(out, "alone", 6, "weights", 1e-4);
  }
}

// Stopped in the middle, and ended on another layout.
TEST_F(RanksTest, AnyLayoutGoesOnWithSpreadExperts) {
  const spec::JobSpec job = mixture_job();
  const auto run = [&](const Spread& over, const std::string& out, const TrainerOptions& options) {
    TrainerOptions all = options;
    all.out = out;
    const RanksResult outcome = run_spread(job, over, all);
    EXPECT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
  };
  run({}, "alone", {});
  run({.fsdp = 2, .zero = 3, .ep = 2}, "whole", {});
  for (const Spread& over : std::vector<Spread>{{.fsdp = 2, .zero = 3, .ep = 2},
                                                {},
                                                {.ep = 4},
                                                {.fsdp = 3, .zero = 1},
                                                {.tp = 2, .ep = 2}}) {
    SCOPED_TRACE(over.text());
    const std::string out = "moved " + over.text();
    run({.fsdp = 2, .zero = 3, .ep = 2}, out, {.stop_after = 3});
    run(over, out, {.resume = true});
    expect_close(out, "alone", 6, "weights", 1e-4);
  }
  // The same layout all the way: the same bits.
  const Spread same{.fsdp = 2, .zero = 3, .ep = 2};
  expect_same("moved " + same.text(), "whole", 6);
  // And the other way.
  run({.fsdp = 3}, "to experts", {.stop_after = 3});
  run({.ep = 4}, "to experts", {.resume = true});
  expect_close("to experts", "alone", 6, "weights", 1e-4);
}

TEST_F(RanksTest, ProcessesWithSpreadExpertsTrainWhatThreadsTrain) {
  const spec::JobSpec job = mixture_job();
  const Spread over{.dp = 2, .zero = 3, .ep = 2};
  const RanksResult threads = run_spread(job, over, {.out = "threads"});
  ASSERT_TRUE(threads.result.has_value()) << threads.result.error().line();
  const auto body = [&](comm::Communicator& c) -> base::Result<void> {
    RecordingReporter reporter;
    ASSAY_TRY_VOID(run(spread(job, over), Rank{c, reporter, {.out = "processes"}}));
    return {};
  };
  const std::vector<std::string> lines =
      comm::testing::run_processes({.ranks = over.ranks(), .body = body, .may_leave = true});
  for (const std::string& line : lines) EXPECT_EQ(line, "ok");
  expect_same("processes", "threads", 6);
}

}  // namespace
}  // namespace assay::train
