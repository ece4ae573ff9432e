// The correction factor of estimates, against simulated devices with known times.
#include "observe/shim/gpu/pace/costs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace assay::gpu {
namespace {

constexpr std::uint32_t kSomePlace = 77;

// Whatever the error of the estimates, it is learnt after a few stretches of work of an estimated
// millisecond each.
RC_GTEST_PROP(GpuCosts, ABiasIsFoundSoon, ()) {
  const double bias = std::exp2(*rc::gen::inRange(-500, 601) / 100.0);
  CostCorrection correction;
  for (int i = 0; i < 40; ++i) {
    const auto estimated = static_cast<double>(
        correction.estimated(*rc::gen::inRange<std::uint64_t>(400'000, 1'200'000)));
    correction.learn(estimated * bias, estimated);
  }
  RC_ASSERT(std::abs(correction.times() / bias - 1) < 0.1);
  const auto real = static_cast<double>(correction.real(1'000'000));
  RC_ASSERT(std::abs(real / (1e6 * bias) - 1) < 0.1);
  RC_ASSERT(std::abs(static_cast<double>(correction.estimated(correction.real(1'000'000))) - 1e6) <
            100);
}

// And changes again when the program's work changes.
TEST(GpuCosts, ANewBiasReplacesTheOld) {
  CostCorrection correction;
  for (int i = 0; i < 100; ++i) correction.learn(600'000, 1'000'000);
  EXPECT_NEAR(correction.times(), 0.6, 0.01);
  for (int i = 0; i < 12; ++i) correction.learn(2'000'000, 1'000'000);
  EXPECT_NEAR(correction.times(), 2, 0.2);
}

// Kernels of one grid, short and long in turn: the estimate is their mean.
TEST(GpuCosts, TheMeanOfWhatAlternates) {
  CostCorrection correction;
  for (int i = 0; i < 200; ++i) correction.learn(i % 2 == 0 ? 500'000 : 1'500'000, 500'000);
  EXPECT_NEAR(correction.times(), 2, 0.35);
}

TEST(GpuCosts, OneStretchAloneChangesLittle) {
  for (const double took : {1e18, -1e18, 0.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    CostCorrection correction;
    for (int i = 0; i < 50; ++i) correction.learn(1'000'000, 1'000'000);
    correction.learn(took, 1'000'000);
    EXPECT_GE(correction.times(), 0.8) << took;
    EXPECT_LE(correction.times(), 1.7) << took;
    for (int i = 0; i < 10; ++i) correction.learn(1'000'000, 1'000'000);
    EXPECT_NEAR(correction.times(), 1, 0.1) << took;
  }
}

TEST(GpuCosts, IdleTimeIsNotTakenForWork) {
  CostCorrection correction;
  for (int i = 0; i < 50; ++i) correction.learn_upper_bound(5'000'000, 1'000'000);
  EXPECT_EQ(correction.times(), 1);
  for (int i = 0; i < 20; ++i) correction.learn_upper_bound(500'000, 1'000'000);
  EXPECT_NEAR(correction.times(), 0.5, 0.05);
}

// A factor learnt while costs were too high does not outlast them in a program that never has a
// full queue, for which all measurements are upper bounds.
TEST(GpuCosts, AFactorBelowOneIsGivenUpWithoutAFullQueue) {
  CostCorrection correction;
  for (int i = 0; i < 20; ++i) correction.learn_upper_bound(600'000, 1'000'000);
  EXPECT_NEAR(correction.times(), 0.6, 0.05);
  for (int i = 0; i < 300; ++i) correction.learn_upper_bound(1'050'000, 1'000'000);
  EXPECT_NEAR(correction.times(), 1, 0.05);
  for (int i = 0; i < 20; ++i) correction.learn_upper_bound(600'000, 1'000'000);
  for (int i = 0; i < 300; ++i) correction.learn_upper_bound(700'000, 1'000'000);
  EXPECT_NEAR(correction.times(), 0.7, 0.05);
}

// Any input gives a finite factor that can be multiplied and divided by.
RC_GTEST_PROP(GpuCosts, AnyInputStaysWithinBounds, (const std::vector<double>& times)) {
  CostCorrection correction;
  for (const double took : times) {
    correction.learn(took, 1'000);
    correction.learn_upper_bound(-took, 1e9);
    RC_ASSERT(correction.times() >= 1.0 / 256);
    RC_ASSERT(correction.times() <= 256);
  }
}

TEST(GpuCosts, AFirstLaunchThatWasSlowIsForgotten) {
  forget_costs();
  EXPECT_EQ(cost_of(kSomePlace), kUnknownCost);
  learn_cost(kSomePlace, 900'000);
  EXPECT_EQ(cost_of(kSomePlace), 900'000U);
  for (int i = 0; i < 3; ++i) learn_cost(kSomePlace, 10'000);
  EXPECT_LT(cost_of(kSomePlace), 30'000U);
}

TEST(GpuCosts, AGridThatIsShortAndLongHasOneSlowCost) {
  forget_costs();
  for (int i = 0; i < 40; ++i) learn_cost(kSomePlace, i % 2 == 0 ? 20'000 : 1'000'000);
  for (int i = 0; i < 40; ++i) {
    const double before = cost_of(kSomePlace);
    learn_cost(kSomePlace, i % 2 == 0 ? 20'000 : 1'000'000);
    EXPECT_NEAR(cost_of(kSomePlace), 510'000, 100'000);
    EXPECT_NEAR(cost_of(kSomePlace) / before, 1, 0.15);
  }
  forget_costs();
}

}  // namespace
}  // namespace assay::gpu
