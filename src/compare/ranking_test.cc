// The order of several arms, of simulated experiments whose true order is known.
#include "compare/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compare/findings.h"

namespace assay::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Groups = std::vector<std::vector<std::size_t>>;

// `logs`: the logarithm of each arm's time.
Measured measured_of(const std::vector<double>& logs, int blocks, std::uint64_t seed,
                     double noise = 0.01) {
  Measured m;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  for (std::size_t i = 0; i < logs.size(); ++i)
    m.experiment.arms.push_back({std::string(1, static_cast<char>('A' + i)), "true"});
  m.experiment.second_baseline = false;
  m.experiment.warm_up = 0;
  std::int64_t run = 0;
  for (int block = 0; block < blocks; ++block) {
    const double shared = 5 * normal(random);
    for (std::size_t arm = 0; arm < logs.size(); ++arm) {
      const double value = std::exp(logs[arm] + shared + normal(random));
      m.runs.push_back({.run = ++run, .block = block, .arm = arm, .wall_s = value, .value = value});
    }
  }
  return m;
}

Ranking ranking_of(const Measured& m) {
  return ranking_of(m.experiment, blocks_of(m));
}

TEST(Ranking, TheOrderAndAllPairs) {
  const Measured m = measured_of({0, -0.3, -0.2, 0.0}, 30, 1);
  const Ranking ranking = ranking_of(m);
  EXPECT_EQ(ranking.groups.at(0), std::vector<std::size_t>{1});
  EXPECT_EQ(ranking.groups.at(1), std::vector<std::size_t>{2});
  EXPECT_EQ(ranking.groups.at(2).size(), 2U);
  ASSERT_EQ(ranking.pairs.size(), 6U);
  const ArmPair& last = ranking.pairs[3];  // C against B
  EXPECT_EQ(last.from, 1U);
  EXPECT_EQ(last.arm, 2U);
  EXPECT_TRUE(last.differ);
  EXPECT_TRUE(last.estimate.interval.contains(0.1)) << last.estimate.centre;
  EXPECT_THAT(ranking_text(m.experiment, ranking),
              HasSubstr("fastest: B; order: B, then C, then "));
  EXPECT_THAT(ranking_text(m.experiment, ranking), HasSubstr("\"or\": not distinguishable"));
  EXPECT_EQ(headline(m.experiment, findings_of(m, 1)), ranking_text(m.experiment, ranking));
}

TEST(Ranking, MoreMayBeBetter) {
  Measured m = measured_of({0, 0.3, -0.2}, 20, 2);
  m.experiment.judgement.more_is_better = true;
  EXPECT_THAT(ranking_of(m).groups, (Groups{{1}, {0}, {2}}));
}

TEST(Ranking, TwoArmsHaveNone) {
  const Measured m = measured_of({0, 0.3}, 20, 3);
  EXPECT_TRUE(ranking_of(m).empty());
  EXPECT_EQ(headline(m.experiment, findings_of(m, 1)), "");
}

TEST(Ranking, OnePairIsTooFew) {
  const Measured m = measured_of({0, 0.3, 0.1}, 1, 4);
  const Ranking ranking = ranking_of(m);
  EXPECT_EQ(ranking.groups.size(), 1U);
  EXPECT_THAT(ranking_text(m.experiment, ranking), HasSubstr("too few pairs"));
}

// Of equal arms, any two are said to differ in at most 5 of 100 experiments; and however the arms
// differ, no pair is put into the wrong order more often.
TEST(Ranking, ErrorsOfAllPairsTogetherAreRare) {
  constexpr int kSimulated = 600;
  constexpr double kMost = kSimulated * 0.05 + 3 * 5.4;  // three standard deviations
  int equal = 0;
  int wrong = 0;
  int missed = 0;  // by their intervals
  for (int i = 0; i < kSimulated; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    equal += ranking_of(measured_of({0, 0, 0, 0}, 20, 100 + seed)).groups.size() > 1 ? 1 : 0;
    const std::vector<double> truth = {0, 0, 0.005, 0.02};
    const Ranking ranking = ranking_of(measured_of(truth, 20, 5000 + seed));
    bool bad = false;
    bool outside = false;
    for (const ArmPair& pair : ranking.pairs) {
      const double really = truth[pair.arm] - truth[pair.from];
      bad = bad || (pair.differ && pair.estimate.centre * really <= 0);
      outside = outside || !pair.estimate.interval.contains(really);
    }
    wrong += bad ? 1 : 0;
    missed += outside ? 1 : 0;
  }
  EXPECT_LE(equal, kMost);
  EXPECT_LE(wrong, kMost);
  EXPECT_LE(missed, kMost);
}

}  // namespace
}  // namespace assay::compare
