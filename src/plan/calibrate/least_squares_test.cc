// Problems whose answers are known, or can be found by trying every point.
#include "plan/calibrate/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace assay::plan {
namespace {

using Residuals = std::function<void(std::span<const double>, std::span<double>)>;

LeastSquaresSolution solved(std::size_t residuals, Residuals evaluate, std::vector<double> start,
                            const LeastSquaresOptions& options) {
  LeastSquaresProblem problem{.residuals = residuals, .evaluate = std::move(evaluate)};
  problem.differentiate = [&problem](std::span<const double> at, std::span<const double> values,
                                     std::span<double> derivatives) {
    forward_differences(problem, at, values, 1e-7, derivatives);
  };
  return least_squares(problem, start, options);
}

// Squares only: no residual is near the scale.
constexpr LeastSquaresOptions kSquares{.scale = 1e6, .tolerance = 1e-12, .most_steps = 500};

TEST(LeastSquares, LineThroughPointsIsTheOneOfTheNormalEquations) {
  const std::vector<double> y = {1, 3, 2, 5};
  const auto found = solved(
      4,
      [&](std::span<const double> at, std::span<double> r) {
        for (std::size_t i = 0; i < 4; ++i) r[i] = at[0] + at[1] * static_cast<double>(i) - y[i];
      },
      {0, 0}, kSquares);
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.at[0], 1.1, 1e-6);  // 2.75 - 1.1 * 1.5
  EXPECT_NEAR(found.at[1], 1.1, 1e-6);  // 5.5 / 5
}

TEST(LeastSquares, RosenbrocksValleyIsFollowedToItsEnd) {
  const auto found = solved(
      2,
      [](std::span<const double> at, std::span<double> r) {
        r[0] = 10 * (at[1] - at[0] * at[0]);
        r[1] = 1 - at[0];
      },
      {-1.2, 1}, kSquares);
  EXPECT_NEAR(found.at[0], 1, 1e-5);
  EXPECT_NEAR(found.at[1], 1, 1e-5);
  EXPECT_LT(found.steps, 60);
}

TEST(LeastSquares, OutliersDoNotMoveTheRest) {
  // Twenty observations of 3, and three of 100: the mean is 15.7.
  std::vector<double> seen(20, 3);
  seen.insert(seen.end(), {100, 100, 100});
  const auto evaluate = [&](std::span<const double> at, std::span<double> r) {
    for (std::size_t i = 0; i < seen.size(); ++i) r[i] = at[0] - seen[i];
  };
  const auto found =
      solved(seen.size(), evaluate, {50}, {.scale = 0.05, .tolerance = 1e-12, .most_steps = 500});
  // 20 d / sqrt(1 + d^2) = 3, d in units of the scale.
  EXPECT_NEAR(found.at[0], 3 + 0.05 * 3 / std::sqrt(400 - 9), 1e-4);
}

TEST(LeastSquares, CostIsSoftL1) {
  const auto found = solved(3,
                            [](std::span<const double> at, std::span<double> r) {
                              for (std::size_t i = 0; i < 3; ++i)
                                r[i] = at[0] - static_cast<double>(i * i);
                            },
                            {0.5}, {.scale = 1, .tolerance = 1e-12, .most_steps = 500});
  // By trying points.
  double best = 1e9;
  for (double x = 0; x <= 4; x += 1e-4) {
    double cost = 0;
    for (const double y : {0.0, 1.0, 4.0}) cost += std::sqrt(1 + (x - y) * (x - y)) - 1;
    best = std::min(best, cost);
  }
  EXPECT_NEAR(found.cost, best, 1e-7);
}

TEST(LeastSquares, UnknownThatNothingDependsOnStays) {
  const auto found = solved(
      1, [](std::span<const double> at, std::span<double> r) { r[0] = at[0] - 2; }, {0, 7},
      kSquares);
  EXPECT_NEAR(found.at[0], 2, 1e-6);
  EXPECT_EQ(found.at[1], 7);
}

TEST(LeastSquares, PointsWithoutAFiniteCostAreNotSteppedTo) {
  const auto found = solved(
      1, [](std::span<const double> at, std::span<double> r) { r[0] = std::log(at[0]) - 1; }, {0.1},
      kSquares);
  EXPECT_NEAR(found.at[0], std::exp(1), 1e-5);
}

TEST(LeastSquares, StopsWhenInterrupted) {
  const auto found = solved(2,
                            [](std::span<const double> at, std::span<double> r) {
                              r[0] = 10 * (at[1] - at[0] * at[0]);
                              r[1] = 1 - at[0];
                            },
                            {-1.2, 1}, {.scale = 1e6, .tolerance = 1e-12, .most_steps = 3});
  EXPECT_EQ(found.steps, 3);
  EXPECT_FALSE(found.converged);
}

}  // namespace
}  // namespace assay::plan
