// Repeated interim analyses must not find effects that do not exist.
#include "compare/stopping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay::compare {
namespace {

Measured analysed(std::vector<InterimAnalysis> analyses, std::int64_t runs = 30) {
  Measured m;
  m.experiment.arms = {{"A", "true"}, {"B", "true"}};
  m.runs.push_back({.run = runs, .value = 1});
  m.analyses = std::move(analyses);
  return m;
}

RuleChange pairs_changed() {
  RuleChange change{.pairs = 8};
  change.to.stop.max_pairs = change.from.stop.max_pairs + 4;
  return change;
}

TEST(InterimAnalyses, TheFirstEndIsThePlannedOne) {
  for (const StopReason stop : {StopReason::kNarrow, StopReason::kTime, StopReason::kPairs}) {
    const InterimAnalysis analysis = interim_analysis(analysed({}), stop, 10);
    EXPECT_TRUE(analysis.planned);
    EXPECT_EQ(analysis.alpha_share, 1);
    EXPECT_EQ(analysis.run, 30);
  }
  EXPECT_EQ(interim_analysis(analysed({}), StopReason::kNo, 10).alpha_share, 0);
  EXPECT_EQ(interim_analysis(analysed({}), StopReason::kFailed, 10).alpha_share, 0);
}

// After an interruption the planned end is still in effect: it was not chosen by looking at the
// estimate.
TEST(InterimAnalyses, AnInterruptedOneMayStillEndByItsRule) {
  Measured m = analysed({{.run = 15, .pairs = 5}});
  EXPECT_TRUE(interim_analysis(m, StopReason::kNarrow, 10).planned);
  EXPECT_TRUE(interim_analysis(m, StopReason::kPairs, 10).planned);
  // Time restarts with every session, so whoever resumes chooses when it ends.
  EXPECT_FALSE(interim_analysis(m, StopReason::kTime, 10).planned);
  EXPECT_DOUBLE_EQ(interim_analysis(m, StopReason::kTime, 10).alpha_share, 1.0 / 12);
  m.changes = {pairs_changed()};
  EXPECT_DOUBLE_EQ(interim_analysis(m, StopReason::kPairs, 10).alpha_share, 1.0 / 12);
  RuleChange margin{.pairs = 8};
  margin.to.judgement.margin_pct = 5;
  margin.to.stop.max_time = base::Seconds(1);
  m.changes = {margin};
  EXPECT_TRUE(interim_analysis(m, StopReason::kPairs, 10).planned);
}

TEST(InterimAnalyses, ThereIsOnePlannedEnd) {
  const InterimAnalysis planned{
      .run = 15, .pairs = 5, .stop = StopReason::kTime, .planned = true, .alpha_share = 1};
  EXPECT_DOUBLE_EQ(interim_analysis(analysed({planned}), StopReason::kNarrow, 10).alpha_share,
                   1.0 / 12);
  EXPECT_DOUBLE_EQ(
      interim_analysis(analysed({planned, planned}), StopReason::kNarrow, 10).alpha_share,
      1.0 / 24);
  // Nothing ran since: it is the same analysis.
  EXPECT_EQ(interim_analysis(analysed({planned}, 15), StopReason::kPairs, 5), planned);
  const InterimAnalysis undecided{.run = 15, .pairs = 5};
  EXPECT_DOUBLE_EQ(
      interim_analysis(analysed({undecided, undecided}, 15), StopReason::kTime, 5).alpha_share,
      1.0 / 24);
}

TEST(InterimAnalyses, AllOfThemTogetherSpendAQuarterMore) {
  std::vector<InterimAnalysis> analyses = {{.run = 1, .planned = true, .alpha_share = 1}};
  double spent = 1;
  for (std::int64_t run = 2; run < 2000; ++run) {
    analyses.push_back(interim_analysis(analysed(analyses, run), StopReason::kTime, run));
    spent += analyses.back().alpha_share;
  }
  EXPECT_LT(spent, 1.25);
  EXPECT_GT(spent, 1.249);
}

TEST(InterimAnalyses, FarOutOnlyRanksAreTrusted) {
  const std::vector<double> clear = {0.5, 0.51, 0.52, 0.49, 0.5, 0.51, 0.5};
  EXPECT_EQ(verdict_spending(clear, 0.05, 1, {}), IntervalVerdict::kFail);
  EXPECT_EQ(verdict_spending(clear, 0.05, 0, {}), IntervalVerdict::kInconclusive);
  EXPECT_EQ(verdict_spending(clear, 0.05, 1.0 / 12, {}), IntervalVerdict::kInconclusive);
}

// An experiment without an effect and with a margin of 0, so every decision is false: eight pairs,
// then four more per resume, up to 80, stopping as soon as there is a decision.
struct Resumed {
  int by_spending = 0;  // with alpha spending
  int without = 0;      // with all of alpha every time
};

Resumed resume_repeatedly(int experiments) {
  Resumed decided;
  for (int seed = 1; seed <= experiments; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::normal_distribution<double> noise(0, 0.01);
    Measured m = analysed({}, 0);
    std::vector<double> differences;
    bool ours = false;
    bool naive = false;
    for (std::size_t pairs = 8; pairs <= 80; pairs += 4) {
      while (differences.size() < pairs) differences.push_back(noise(random));
      m.runs.back().run = static_cast<std::int64_t>(3 * pairs);
      if (pairs > 8) m.changes = {pairs_changed()};
      m.analyses.push_back(
          interim_analysis(m, StopReason::kPairs, static_cast<std::int64_t>(pairs)));
      const Judgement judgement{.margin_pct = 0};
      ours = ours || verdict_spending(differences, 0.05, m.analyses.back().alpha_share,
                                      judgement) != IntervalVerdict::kInconclusive;
      naive = naive ||
              verdict_spending(differences, 0.05, 1, judgement) != IntervalVerdict::kInconclusive;
    }
    decided.by_spending += ours ? 1 : 0;
    decided.without += naive ? 1 : 0;
  }
  return decided;
}

TEST(InterimAnalyses, ResumingAgainAndAgainFindsNoEffectThatIsNotThere) {
  constexpr int kResumed = 1000;
  const Resumed decided = resume_repeatedly(kResumed);
  // One standard deviation of a binomial of 1,000 at 5 % is 0.7 %.
  EXPECT_LE(decided.by_spending, 0.065 * kResumed);
  EXPECT_GE(decided.by_spending, 0.03 * kResumed);
  EXPECT_GE(decided.without, 0.15 * kResumed);
  ::testing::Test::RecordProperty("false_decisions", decided.by_spending);
  ::testing::Test::RecordProperty("without_spending", decided.without);
}

}  // namespace
}  // namespace assay::compare
