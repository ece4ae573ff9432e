// From a journal's runs to its findings.
#include "compare/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random_draws.h"
#include "compare/metric_reader.h"

namespace assay::compare {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Noise that is the same every time.
double wobble(std::int64_t i) {
  return 0.004 *
         (static_cast<double>(base::Draws(5, static_cast<std::uint64_t>(i)).below(1000)) / 1000 -
          0.5);
}

Measured measured_of(int blocks, double effect, std::size_t arms = 2) {
  Measured m;
  for (std::size_t i = 0; i < arms; ++i)
    m.experiment.arms.push_back({std::string(1, static_cast<char>('A' + i)), "true"});
  std::int64_t run = 0;
  for (int block = 0; block < blocks; ++block) {
    for (std::size_t arm = 0; arm <= arms; ++arm) {
      ++run;
      const double slow = arm == 1 ? 1 + effect : 1;
      const double value = slow * std::exp(wobble(run));
      m.runs.push_back(
          {.run = run, .block = block, .arm = arm, .wall_s = value, .cpu_s = 0.5, .value = value});
    }
  }
  return m;
}

TEST(Findings, AnEffectBeyondTheMarginFails) {
  const Measured m = measured_of(30, 0.02);
  const Findings f = findings_of(m, 1);
  EXPECT_EQ(f.verdict, IntervalVerdict::kFail);
  const Estimate& e = f.comparisons.at(0).effect.estimate;
  EXPECT_EQ(e.pairs, 30);
  EXPECT_NEAR(percent(e.centre), 2, 0.2);
  ASSERT_TRUE(f.noise_floor_pct);
  EXPECT_LT(*f.noise_floor_pct, 0.5);
  EXPECT_EQ(f.arms.size(), 3U);
  EXPECT_EQ(f.arms[2].runs, 30);
  EXPECT_NEAR(f.arms[1].median, 1.02, 0.005);
}

TEST(Findings, CutOffByHandDecidesNothing) {
  const Measured m = measured_of(30, 0.02);
  EXPECT_EQ(findings_of(m, 0).verdict, IntervalVerdict::kInconclusive);
}

TEST(Findings, TheWorstOfSeveralArmsCounts) {
  Measured m = measured_of(30, 0.02, 3);
  Findings f = findings_of(m, 1);
  EXPECT_EQ(f.comparisons.at(0).verdict, IntervalVerdict::kFail);
  EXPECT_EQ(f.comparisons.at(1).verdict, IntervalVerdict::kPass);
  EXPECT_EQ(f.verdict, IntervalVerdict::kFail);
  EXPECT_DOUBLE_EQ(f.comparisons.at(0).effect.alpha, 0.025);
}

TEST(Findings, TheDecidingArmIsTheOneThatDecided) {
  Measured m = measured_of(30, 0, 4);
  for (ArmRun& run : m.runs) run.value *= run.arm == 2 ? 1.05 : run.arm == 3 ? 1.02 : 1;
  EXPECT_EQ(findings_of(m, 1).deciding().arm, 2U);
  m.experiment.judgement.margin_pct = 10;
  EXPECT_EQ(findings_of(m, 1).verdict, IntervalVerdict::kPass);
  EXPECT_EQ(findings_of(m, 1).deciding().arm, 2U);
  m.experiment.judgement.margin_pct = 5;
  EXPECT_EQ(findings_of(m, 1).verdict, IntervalVerdict::kInconclusive);
  EXPECT_EQ(findings_of(m, 1).deciding().arm, 2U);
  m.experiment.judgement = {1, true};
  EXPECT_EQ(findings_of(m, 1).verdict, IntervalVerdict::kPass);
  EXPECT_EQ(findings_of(m, 1).deciding().arm, 1U);
}

// Runs that are all equal have an interval without width, and a mean that rounding moves.
// Values by block and arm.
Measured measured_as(const std::vector<std::vector<double>>& blocks) {
  Measured m;
  m.experiment.second_baseline = false;
  std::int64_t run = 0;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (std::size_t arm = 0; arm < blocks[block].size(); ++arm) {
      if (block == 0)
        m.experiment.arms.push_back({std::string(1, static_cast<char>('A' + arm)), "true"});
      const double value = blocks[block][arm];
      m.runs.push_back({.run = ++run,
                        .block = static_cast<std::int64_t>(block),
                        .arm = arm,
                        .wall_s = value,
                        .cpu_s = 0.5,
                        .value = value});
    }
  }
  return m;
}

// An arm is the best only where it can be told from every other one, not only from the first.
TEST(Findings, ArmsThatCannotBeToldApartShareTheFirstPlace) {
  const auto text = [](double b, double c, double noise) {
    std::vector<std::vector<double>> blocks;
    for (int i = 0; i < 30; ++i) {
      const auto noisy = [&](double value, int arm) {
        return value * std::exp(noise * wobble(10 * i + arm));
      };
      blocks.push_back({noisy(1, 1), noisy(b, 2), noisy(c, 3)});
    }
    const Measured m = measured_as(blocks);
    const Findings f = findings_of(m, 1);
    EXPECT_EQ(best_arms(m.experiment, f).empty(), false);
    return best_value_text(m.experiment, f);
  };
  EXPECT_EQ(text(0.5, 2, 1), "fastest: B, 2.00 × faster than A");
  EXPECT_EQ(text(2, 4, 1), "fastest: A, the first");
  // B and C are both faster than A, and nothing tells which is faster.
  EXPECT_THAT(
      text(0.5, 0.5, 1),
      ::testing::AnyOf("fastest: B or C, not distinguishable: the interval of their difference "
                       "includes 0",
                       "fastest: C or B, not distinguishable: the interval of their difference "
                       "includes 0"));
  EXPECT_THAT(text(1, 1, 1),
              HasSubstr("not distinguishable: the intervals of their differences from"));
  EXPECT_THAT(text(1, 2, 1), ::testing::AnyOf(HasSubstr("fastest: A or B, not"),
                                              HasSubstr("fastest: B or A, not")));
  // Noise far beyond the differences.
  EXPECT_THAT(text(0.999, 1.001, 30), HasSubstr("not distinguishable"));
  // One block has no interval.
  const Measured one = measured_as({{1, 0.5}});
  EXPECT_THAT(best_value_text(one.experiment, findings_of(one, 1)),
              HasSubstr("not distinguishable"));
}

TEST(Findings, RoundingIsNoRareSlowRun) {
  Measured m = measured_of(12, 0);
  for (ArmRun& run : m.runs) run.value = run.arm == 1 ? 102 : 100;
  EXPECT_THAT(findings_of(m, 1).warnings, Not(Contains(HasSubstr("far from the centre"))));
  m.runs[1].value = 300;
  EXPECT_THAT(findings_of(m, 1).warnings, Contains(HasSubstr("far from the centre")));
}

TEST(Findings, InterimAnalysesRaiseTheRequiredConfidence) {
  Measured m = measured_of(8, 0.02);
  EXPECT_EQ(findings_of(m, 1).verdict, IntervalVerdict::kFail);
  m.analyses = {{.run = 15, .pairs = 5}, {.run = 24, .pairs = 8, .alpha_share = 1.0 / 12}};
  const Findings f = findings_of(m, 1.0 / 12);
  EXPECT_EQ(f.verdict, IntervalVerdict::kInconclusive);
  EXPECT_THAT(f.warnings, Contains(HasSubstr("reported 1 time before")));
  EXPECT_LT(f.deciding().judged.interval.low, f.deciding().effect.estimate.interval.low);
}

TEST(Findings, ChangedRulesAndMachinesAreReported) {
  Measured m = measured_of(12, 0);
  RuleChange change{.pairs = 7};
  change.to.judgement.margin_pct = 5;
  m.changes = {change};
  m.sessions = {{.host = "a", .kernel = "6.1"}, {.begun = "later", .host = "b", .kernel = "6.1"}};
  m.failures = {{.run = 9, .arm = 1, .what = "exited with 7"}};
  const auto warnings = findings_of(m, 1).warnings;
  EXPECT_THAT(warnings, Contains("after 7 pairs, the margin was changed from 1 % to 5 %"));
  EXPECT_THAT(warnings, Contains("it was resumed at later with another host: b instead of a"));
  EXPECT_THAT(warnings, Not(Contains(HasSubstr("kernel"))));
  EXPECT_THAT(warnings, Contains("1 run failed and not counted, the last one as run 9, arm B"));
}

TEST(Findings, ABlockThatWasCutShortIsNotPaired) {
  Measured m = measured_of(30, 0);
  m.runs.erase(m.runs.begin() + 4);
  const Findings f = findings_of(m, 1);
  EXPECT_EQ(f.blocks.complete.size(), 29U);
  EXPECT_EQ(f.blocks.cut_short, 1);
  EXPECT_THAT(f.warnings, Contains("1 block cut short and not paired"));
}

TEST(Findings, WarmUpIsShownAndNotCounted) {
  Measured m = measured_of(30, 0);
  for (std::size_t run = 0; run < 6; ++run) m.runs[run].value *= 3;
  Findings f = findings_of(m, 1);
  EXPECT_EQ(f.blocks.warm_up, 2);
  EXPECT_EQ(f.comparisons.at(0).effect.estimate.pairs, 28);
  m.experiment.warm_up = 5;
  f = findings_of(m, 1);
  EXPECT_EQ(f.comparisons.at(0).effect.estimate.pairs, 25);
}

TEST(Findings, MarkedBlocksAreKeptAndReported) {
  Measured m = measured_of(30, 0);
  m.marks = {{3, 5, {"others used 1.0 processors"}}};
  const Findings f = findings_of(m, 1);
  EXPECT_EQ(f.marked, 3);
  EXPECT_EQ(f.comparisons.at(0).effect.estimate.pairs, 30);
  EXPECT_THAT(f.warnings, Contains(HasSubstr("disturbed in 3 of 30 blocks")));
}

TEST(Findings, OfNothing) {
  Measured m = measured_of(0, 0);
  const Findings f = findings_of(m, 1);
  EXPECT_EQ(f.verdict, IntervalVerdict::kInconclusive);
  EXPECT_FALSE(f.noise_floor_pct);
  EXPECT_EQ(widest_estimate(m).method, Method::kNone);
}

std::vector<StepValue> steps_of_run(std::int64_t first, int count, double seconds,
                                    std::int64_t run) {
  std::vector<StepValue> steps;
  for (int i = 0; i < count; ++i) {
    const std::int64_t step = first + i;
    steps.push_back({step, seconds * std::exp(wobble(run * 31 + step)) * (i == 0 ? 5 : 1), 0});
  }
  return steps;
}

TEST(Findings, StepsAreMatchedAndTheRestIsReportedSeparately) {
  Measured m = measured_of(8, 0);
  m.experiment.steps = *parse_steps("json:a,b");
  m.experiment.quality = *parse_metric("json:loss");
  for (ArmRun& run : m.runs) {
    const bool b = run.arm == 1;
    run.steps = steps_of_run(b ? 3 : 1, 60, b ? 0.0102 : 0.01, run.run);
    run.value = steady_step(run.steps);
    run.wall_s = b ? 3 : 2;
    run.startup_s = (b ? 2.0 : 1.0) + wobble(run.run);
    run.after_s = 0.1 + wobble(run.run * 3);
    run.quality = 2.5 + wobble(run.run * 5);
  }
  const Findings f = findings_of(m, 1);
  const Comparison& c = f.comparisons.at(0);
  EXPECT_NEAR(percent(c.effect.estimate.centre), 2, 0.1);
  EXPECT_EQ(c.steps, 8 * 57);  // 3 … 60 in both, without B's first
  EXPECT_NEAR(percent(c.whole_runs->estimate.centre), 50, 1e-9);
  EXPECT_NEAR(c.startup_s->estimate.centre, 1, 0.01);
  EXPECT_NEAR(c.after_s->estimate.centre, 0, 0.01);
  EXPECT_NEAR(c.quality->baseline, 2.5, 0.01);
  EXPECT_EQ(c.quality_within_noise, true);
  for (ArmRun& run : m.runs) *run.quality += run.arm == 1 ? 0.1 : 0;
  EXPECT_EQ(findings_of(m, 1).comparisons.at(0).quality_within_noise, false);
}

TEST(Findings, MissingStepsAreReported) {
  Measured m = measured_of(8, 0);
  m.experiment.steps = *parse_steps("json:a,b");
  for (ArmRun& run : m.runs) {
    const bool other = run.arm == 1 && run.block == 3;
    run.steps = steps_of_run(other ? 100 : 1, run.arm == 2 ? 3 : 20, 1, run.run);
  }
  const Findings f = findings_of(m, 1);
  EXPECT_EQ(f.comparisons.at(0).unmatched, 1);
  EXPECT_EQ(f.arms.at(1).least_steps, 20);
  EXPECT_THAT(f.warnings, Contains("B: 1 pair without a step in common, not counted"));
  EXPECT_THAT(f.warnings, Contains("A': only 3 steps found in a run; does the pattern find all?"));
}

TEST(Steps, WithNoneInCommonGiveNoDifference) {
  const auto a = steps_of_run(1, 10, 1, 1);
  const auto b = steps_of_run(100, 10, 1, 2);
  EXPECT_FALSE(match_steps(a, b));
  EXPECT_EQ(match_steps(a, a)->difference, 0);
}

TEST(Steps, TimeIsSplitWhereLinesArrived) {
  // "1\n2\n3\n", a step a second, the first line after 3 seconds.
  const std::vector<StepValue> steps = {{1, 1, 1}, {2, 1, 3}, {3, 1, 5}};
  const std::vector<OutputMoment> live = {{2, 3}, {4, 4}, {6, 5}};
  ArmRun run{.wall_s = 7, .steps = steps};
  split_time(1, live, run);
  EXPECT_EQ(run.startup_s, 2);
  EXPECT_EQ(run.after_s, 2);
  ArmRun buffered{.wall_s = 7, .steps = steps};
  split_time(1, std::vector<OutputMoment>{{6, 7}}, buffered);
  EXPECT_FALSE(buffered.startup_s || buffered.after_s);
}

TEST(Findings, TwoGroupsOfDifferencesAreSaid) {
  Measured m = measured_of(24, 0);
  m.experiment.warm_up = 0;
  for (ArmRun& run : m.runs) {
    if (run.arm == 1) run.value *= run.block % 3 == 0 ? 0.4 : 0.75;
  }
  EXPECT_THAT(findings_of(m, 1).warnings,
              Contains(AllOf(HasSubstr("B against A: the differences are in two groups, about -6"),
                             HasSubstr("(8 pairs) and -2"), HasSubstr("(16 pairs)"))));
  EXPECT_THAT(findings_of(measured_of(24, 0.02), 1).warnings,
              Not(Contains(HasSubstr("in two groups"))));
  // Between the second and the third arm, too.
  m = measured_of(24, 0, 3);
  for (ArmRun& run : m.runs) {
    if (run.arm == 2) run.value *= run.block % 2 == 0 ? 0.4 : 0.75;
  }
  EXPECT_THAT(findings_of(m, 1).warnings, Contains(HasSubstr("C against B: the differences are")));
}

}  // namespace
}  // namespace assay::compare
