// Least squares for what is not linear and has outliers: small residuals count by their squares,
// those beyond a scale by their size (soft L1: scale^2 (sqrt(1 + (r/scale)^2) - 1), summed).
//
// By hand, because it is a screen of code here: Eigen's Levenberg-Marquardt takes eight seconds to
// compile, fourteen with sanitizers, and wants the residuals transformed.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace assay::plan {

struct LeastSquaresProblem {
  std::size_t residuals = 0;
  // Fills in the residuals at a point.
  std::function<void(std::span<const double> at, std::span<double> values)> evaluate;
  // Fills in their derivatives, one unknown after the other: derivatives[k * residuals + i] is that
  // of residual i by unknown k. `values` are the residuals at the point.
  std::function<void(std::span<const double> at, std::span<const double> values,
                     std::span<double> derivatives)>
      differentiate;
};

struct LeastSquaresOptions {
  double scale = 0.05;      // where squares become sizes
  double tolerance = 1e-6;  // done when a step lowers the cost by less than this part
  int most_steps = 60;      // that lower it
};

struct LeastSquaresSolution {
  std::vector<double> at;
  double cost = 0;
  int steps = 0;
  bool converged = false;  // else most_steps were taken
};

// From `start` downhill: the cost never rises. A point where it is not finite is not stepped to.
LeastSquaresSolution least_squares(const LeastSquaresProblem& problem,
                                   std::span<const double> start,
                                   const LeastSquaresOptions& options = {});

// Derivatives by differences, for `differentiate`.
void forward_differences(const LeastSquaresProblem& problem, std::span<const double> at,
                         std::span<const double> values, double step,
                         std::span<double> derivatives);

}  // namespace assay::plan
