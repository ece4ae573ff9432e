// Who looks and goes on must not find effects that are not there.
#include "compare/looks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay::compare {
namespace {

Measured looked_at(std::vector<Look> looks, std::int64_t runs = 30) {
  Measured m;
  m.experiment.arms = {{"A", "true"}, {"B", "true"}};
  m.runs.push_back({.run = runs, .value = 1});
  m.looks = std::move(looks);
  return m;
}

RuleChange pairs_changed() {
  RuleChange change{.pairs = 8};
  change.to.stop.max_pairs = change.from.stop.max_pairs + 4;
  return change;
}

TEST(Looks, TheFirstEndIsThePlannedOne) {
  for (const Stop stop : {Stop::kNarrow, Stop::kTime, Stop::kPairs}) {
    const Look look = look_at(looked_at({}), stop, 10);
    EXPECT_TRUE(look.planned);
    EXPECT_EQ(look.share, 1);
    EXPECT_EQ(look.run, 30);
  }
  EXPECT_EQ(look_at(looked_at({}), Stop::kNo, 10).share, 0);
  EXPECT_EQ(look_at(looked_at({}), Stop::kFailed, 10).share, 0);
}

// Cut off by hand, it may still end as it was going to: that end was no choice of who looked.
TEST(Looks, AnInterruptedOneMayStillEndByItsRule) {
  Measured m = looked_at({{.run = 15, .pairs = 5}});
  EXPECT_TRUE(look_at(m, Stop::kNarrow, 10).planned);
  EXPECT_TRUE(look_at(m, Stop::kPairs, 10).planned);
  // Time counts anew, so who looks chooses when it is over.
  EXPECT_FALSE(look_at(m, Stop::kTime, 10).planned);
  EXPECT_DOUBLE_EQ(look_at(m, Stop::kTime, 10).share, 1.0 / 12);
  m.changes = {pairs_changed()};
  EXPECT_DOUBLE_EQ(look_at(m, Stop::kPairs, 10).share, 1.0 / 12);
  RuleChange margin{.pairs = 8};
  margin.to.judgement.margin_pct = 5;
  margin.to.stop.max_time = base::Seconds(1);
  m.changes = {margin};
  EXPECT_TRUE(look_at(m, Stop::kPairs, 10).planned);
}

TEST(Looks, ThereIsOnePlannedEnd) {
  const Look planned{.run = 15, .pairs = 5, .stop = Stop::kTime, .planned = true, .share = 1};
  EXPECT_DOUBLE_EQ(look_at(looked_at({planned}), Stop::kNarrow, 10).share, 1.0 / 12);
  EXPECT_DOUBLE_EQ(look_at(looked_at({planned, planned}), Stop::kNarrow, 10).share, 1.0 / 24);
  // Nothing ran since: it is the same look.
  EXPECT_EQ(look_at(looked_at({planned}, 15), Stop::kPairs, 5), planned);
  const Look undecided{.run = 15, .pairs = 5};
  EXPECT_DOUBLE_EQ(look_at(looked_at({undecided, undecided}, 15), Stop::kTime, 5).share, 1.0 / 24);
}

TEST(Looks, AllOfThemTogetherSpendAQuarterMore) {
  std::vector<Look> looks = {{.run = 1, .planned = true, .share = 1}};
  double spent = 1;
  for (std::int64_t run = 2; run < 2000; ++run) {
    looks.push_back(look_at(looked_at(looks, run), Stop::kTime, run));
    spent += looks.back().share;
  }
  EXPECT_LT(spent, 1.25);
  EXPECT_GT(spent, 1.249);
}

TEST(Looks, FarOutOnlyRanksAreTrusted) {
  const std::vector<double> clear = {0.5, 0.51, 0.52, 0.49, 0.5, 0.51, 0.5};
  EXPECT_EQ(verdict_after(clear, 0.05, 1, {}), Verdict::kFail);
  EXPECT_EQ(verdict_after(clear, 0.05, 0, {}), Verdict::kInconclusive);
  EXPECT_EQ(verdict_after(clear, 0.05, 1.0 / 12, {}), Verdict::kInconclusive);
}

// An experiment without an effect and a margin of 0: every decision is a false one. Eight pairs,
// then four more per resume, up to 80, stopping as soon as something is decided.
struct Resumed {
  int by_looks = 0;    // as we judge
  int by_nothing = 0;  // as if nobody had looked before
};

Resumed resume_again_and_again(int experiments) {
  Resumed decided;
  for (int seed = 1; seed <= experiments; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::normal_distribution<double> noise(0, 0.01);
    Measured m = looked_at({}, 0);
    std::vector<double> differences;
    bool ours = false;
    bool naive = false;
    for (std::size_t pairs = 8; pairs <= 80; pairs += 4) {
      while (differences.size() < pairs) differences.push_back(noise(random));
      m.runs.back().run = static_cast<std::int64_t>(3 * pairs);
      if (pairs > 8) m.changes = {pairs_changed()};
      m.looks.push_back(look_at(m, Stop::kPairs, static_cast<std::int64_t>(pairs)));
      const Judgement judgement{.margin_pct = 0};
      ours = ours || verdict_after(differences, 0.05, m.looks.back().share, judgement) !=
                         Verdict::kInconclusive;
      naive = naive || verdict_after(differences, 0.05, 1, judgement) != Verdict::kInconclusive;
    }
    decided.by_looks += ours ? 1 : 0;
    decided.by_nothing += naive ? 1 : 0;
  }
  return decided;
}

TEST(Looks, ResumingAgainAndAgainFindsNoEffectThatIsNotThere) {
  constexpr int kResumed = 1000;
  const Resumed decided = resume_again_and_again(kResumed);
  // One standard deviation of a binomial of 1,000 at 5 % is 0.7 %.
  EXPECT_LE(decided.by_looks, 0.065 * kResumed);
  EXPECT_GE(decided.by_looks, 0.03 * kResumed);
  EXPECT_GE(decided.by_nothing, 0.15 * kResumed);
  ::testing::Test::RecordProperty("false_decisions", decided.by_looks);
  ::testing::Test::RecordProperty("without_looks", decided.by_nothing);
}

}  // namespace
}  // namespace assay::compare
