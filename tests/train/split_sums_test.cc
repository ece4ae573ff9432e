// Ranks that divide sums (tensor and context parallelism) give what one rank gives, up to rounding,
// and the same bits every time.
#include "train/ranks.h"

namespace assay::train {
namespace {

// Tensor-parallel ranks add up products in parts, so bits differ from one rank's; the same layout
// has the same bits every time. The vocabulary of 256 becomes odd, so that ranks' parts of the
// tables are padded differently.
TEST_F(RanksTest, TensorParallelRanksTrainWhatOneRankTrains) {
  const std::vector<Spread> spreads = {
      {.tp = 2},
      {.tp = 2, .sp = true},
      {.fsdp = 2, .zero = 3, .tp = 2, .sp = true},
      {.fsdp = 3, .zero = 2, .tp = 2},
      {.dp = 2, .pp = 2, .tp = 2, .sp = true},
      {.dp = 2, .fsdp = 2, .zero = 1, .tp = 2},
  };
  for (Kind kind : kinds()) {
    if (kind.job.train.optimizer == spec::Optimizer::kMuon) {
      kind.job.train.optimizer = spec::Optimizer::kAdamw;  // leaves learned norms of heads
    }
    kind.job.model.vocab = 301;
    const std::string alone = fmt::format("{}-alone", kind.name);
    const RanksResult one = run_ranks(kind.job, 1, {.out = alone});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    for (const Spread& over : spreads) {
      // All of them for one kind, and some for the others.
      const auto which = &over - spreads.data();
      const bool all = kind.name == std::string("llama");
      if (!all && which != (kind.name == std::string("gpt") ? 2 : 4)) continue;
      SCOPED_TRACE(fmt::format("{} on {}", kind.name, over.text()));
      std::vector<std::string> first;
      for (int again = 0; again < (all ? 1 : 2); ++again) {
        const std::string out = fmt::format("{}-{}-{}", kind.name, &over - spreads.data(), again);
        std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
        const RanksResult many = run_spread(kind.job, over, {.out = out}, [&](Rank& rank) {
          rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())];
        });
        ASSERT_TRUE(many.result.has_value()) << many.result.error().line();
        for (const RecordingReporter& reporter : many.reporters) {
          ASSERT_EQ(reporter.reports.size(), 6U);
          for (std::size_t i = 0; i < 6; ++i) {
            const StepReport& found = reporter.reports[i];
            const StepReport& expected = one.reporters[0].reports[i];
            EXPECT_EQ(found.loss, many.reporters[0].reports[i].loss);
            EXPECT_NEAR(found.loss, expected.loss, 2e-5 * expected.loss);
            EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 2e-4 * expected.gradient_norm);
            EXPECT_EQ(found.tokens, expected.tokens);
          }
        }
        for (const char* part : {"weights", "optimizer"}) expect_close(out, alone, 6, part, 1e-4);
        if (first.empty()) first = contents(out, 6);
        EXPECT_EQ(contents(out, 6), first);
      }
    }
  }
}

// What tensor-parallel ranks have saved, others go on with, and one rank with what these saved.
TEST_F(RanksTest, TensorParallelCheckpointsAreResumedInAnyLayout) {
  spec::JobSpec job = kinds()[1].job;
  job.checkpoint.keep = 10;
  const std::vector<Spread> ways = {{.tp = 2, .sp = true},
                                    {.fsdp = 3, .zero = 3, .tp = 2},
                                    {.fsdp = 1},
                                    {.fsdp = 2, .zero = 1, .pp = 2, .tp = 2, .sp = true}};
  ASSERT_TRUE(run_spread(job, ways[0], {.out = "saved", .stop_after = 2}).result.has_value());
  for (const Spread& way : ways) {
    SCOPED_TRACE(way.text());
    const std::string out = fmt::format("way-{}", &way - ways.data());
    fs::copy(dir_.path() / "saved", dir_.path() / out, fs::copy_options::recursive);
    ASSERT_TRUE(run_spread(job, way, {.out = out, .resume = true, .stop_after = 3}).result);
    ASSERT_TRUE(run_spread(job, ways[2], {.out = out, .resume = true, .stop_after = 4}).result);
    EXPECT_EQ(read_independently(out, 2), read_independently("saved", 2));
    EXPECT_NE(read_independently(out, 3), read_independently("saved", 2));
    if (&way == ways.data()) continue;
    for (const char* part : {"weights", "optimizer"}) expect_close(out, "way-0", 4, part, 1e-4);
  }
}

// Where ranks divide products, bits are theirs; stages and schedules change nothing about that.
TEST_F(RanksTest, ZeroBubblePipelinesOfTensorParallelRanksTrainWhatThoseTrain) {
  const std::vector<Kind> all = kinds();
  for (const bool sp : {false, true}) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string alone = fmt::format("{}-tp-{}", all[i].name, sp);
      const RanksResult one = run_spread(all[i].job, {.tp = 2, .sp = sp}, {.out = alone});
      ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
      const Spread over{.fsdp = sp ? 2 : 1,
                        .zero = 3,
                        .pp = sp ? 2 : 3,
                        .schedule = spec::PipelineSchedule::kZbH1,
                        .tp = 2,
                        .sp = sp};
      SCOPED_TRACE(fmt::format("{} on {}", all[i].name, over.text()));
      expect_trains_as(alone, one, all[i].job, over, fmt::format("{}-{}", all[i].name, sp));
    }
  }
}

// Ranks that share sequences add attention up in another order than one rank, so they are compared
// within a tolerance: gradients of the first step, and losses and weights after several. With the
// same `cp` and `tp` everything else may be spread in any way, and the bits stay the same.
TEST_F(RanksTest, RanksThatShareSequencesTrainWhatOneRankTrainsUpToRounding) {
  const std::vector<Spread> spreads = {
      {.cp = 2},
      {.cp = 3},
      {.fsdp = 2, .zero = 3, .cp = 2},
      {.dp = 2, .fsdp = 2, .zero = 1, .cp = 2},
      {.pp = 2, .cp = 2},
      {.fsdp = 2, .zero = 3, .unit = spec::ShardUnit::kModule, .pp = 2, .cp = 2},
      {.pp = 2, .schedule = spec::PipelineSchedule::kInterleaved, .chunks = 2, .cp = 3},
      {.tp = 2, .sp = true, .cp = 2},
      {.fsdp = 2, .zero = 3, .pp = 2, .tp = 2, .sp = true, .cp = 2},
      {.dp = 2, .tp = 2, .cp = 3},
      {.pp = 2, .schedule = spec::PipelineSchedule::kZbH1, .cp = 2},
  };
  use_windows_of(24);
  for (Kind kind : kinds()) {
    kind.job.batch.sequence = 24;
    kind.job.train.epsilon = 1e-6;
    const std::string alone = fmt::format("{}-alone", kind.name);
    const RanksResult one = run_spread(kind.job, {}, {.out = alone, .stop_after = 1});
    ASSERT_TRUE(one.result.has_value()) << one.result.error().line();
    const RanksResult rest = run_spread(kind.job, {}, {.out = alone, .resume = true});
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> first;  // run with this cp, tp
    for (const Spread& drawn : spreads) {
      const auto number = &drawn - spreads.data();
      // All of them for one kind, and some for the others.
      if (kind.name != std::string("llama") && number % 3 != 1) continue;
      Spread over = drawn;
      if (kind.job.train.optimizer == spec::Optimizer::kMuon) over.zero = 2;
      if (kind.job.train.optimizer == spec::Optimizer::kMuon && over.tp > 1) continue;
      constexpr spec::Recompute kPolicies[] = {spec::Recompute::kNone, spec::Recompute::kCheap,
                                               spec::Recompute::kFfn, spec::Recompute::kFull};
      kind.job.train.recompute = kPolicies[number % 4];
      SCOPED_TRACE(fmt::format("{} on {}", kind.name, over.text()));
      const std::string out = fmt::format("{}-{}", kind.name, number);
      std::vector<ExecutedLog> logs(static_cast<std::size_t>(over.ranks()));
      const RanksResult begun = run_spread(
          kind.job, over, {.out = out, .stop_after = 1},
          [&](Rank& rank) { rank.log = &logs[static_cast<std::size_t>(rank.ranks.rank())]; });
      ASSERT_TRUE(begun.result.has_value()) << begun.result.error().line();
      expect_close(out, alone, 1, "optimizer", 5e-6);
      const RanksResult ended = run_spread(kind.job, over, {.out = out, .resume = true});
      ASSERT_TRUE(ended.result.has_value()) << ended.result.error().line();
      expect_close(out, alone, 6, "weights", 1e-5);
      for (const RecordingReporter& reporter : ended.reporters) {
        ASSERT_EQ(reporter.reports.size(), 5U);
        for (std::size_t i = 0; i < 5; ++i) {
          const StepReport& found = reporter.reports[i];
          const StepReport& expected = rest.reporters[0].reports[i];
          EXPECT_NEAR(found.loss / expected.loss, 1, 1e-5);
          EXPECT_NEAR(found.gradient_norm / expected.gradient_norm, 1, 1e-4);
          EXPECT_EQ(found.tokens, expected.tokens);
          EXPECT_EQ(found.loss, ended.reporters[0].reports[i].loss);
        }
      }
      if (const auto [same, is_new] = first.try_emplace({over.cp, over.tp}, out); !is_new) {
        expect_same(out, same->second, 6);
      }
    }
  }
}

TEST_F(RanksTest, RanksThatShareSequencesRepeatAndResumeAnywhere) {
  use_windows_of(24);
  spec::JobSpec job = kinds()[0].job;
  job.batch.sequence = 24;
  job.train.validate_every = 3;
  job.train.validate_tokens = 300;
  const Spread shared{.fsdp = 2, .zero = 3, .cp = 2};
  for (const char* out : {"once", "twice"}) {
    ASSERT_TRUE(run_spread(job, shared, {.out = out}).result.has_value());
  }
  expect_same("once", "twice", 6);
  const auto run_on = [&](const std::string& out, const Spread& over, bool resume,
                          std::optional<std::int64_t> until) {
    const RanksResult outcome = run_spread(
        job, over, {.out = out, .resume = resume, .stop_after = until, .validation = set_.get()});
    ASSERT_TRUE(outcome.result.has_value()) << outcome.result.error().line();
    const RecordingReporter& first = outcome.reporters.front();
    for (const RecordingReporter& reporter : outcome.reporters) {
      ASSERT_EQ(reporter.validations.size(), first.validations.size());
      for (std::size_t i = 0; i < first.validations.size(); ++i) {
        EXPECT_EQ(reporter.validations[i].loss, first.validations[i].loss);
        validated_[out] = first.validations[i].loss;
      }
    }
  };
  run_on("alone", {}, false, std::nullopt);
  // Shared by two, then by nobody, then by three in two stages.
  run_on("moved", shared, false, 2);
  run_on("moved", {}, true, 4);
  run_on("moved", {.pp = 2, .cp = 3}, true, std::nullopt);
  expect_close("moved", "alone", 6, "weights", 2e-5);
  EXPECT_NEAR(validated_["moved"] / validated_["alone"], 1, 1e-5);
}

}  // namespace
}  // namespace assay::train
