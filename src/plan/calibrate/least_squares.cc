// Levenberg-Marquardt: Gauss and Newton's step, shortened towards the gradient's where the model
// is not as linear as it assumes.
#include "plan/calibrate/least_squares.h"

#include <algorithm>
#include <cmath>

namespace assay::plan {
namespace {

// Damping is relative to the curvature's diagonal, so that it does not depend on units.
constexpr double kFirstDamping = 1e-2;
constexpr double kLeastDamping = 1e-7;
constexpr double kMostDamping = 1e8;  // steps are then too short to matter
constexpr double kLessDamping = 0.2;
constexpr double kMoreDamping = 4;

// What is to be minimized near a point: its gradient and (packed by rows) its curvature.
struct Slope {
  std::vector<double> gradient;
  std::vector<double> curvature;
};

double soft_cost(std::span<const double> residuals, double scale) {
  double sum = 0;
  for (const double r : residuals) {
    const double square = r * r / (scale * scale);
    sum += square / (std::sqrt(1 + square) + 1);  // sqrt(1 + square) - 1, exact where it is small
  }
  return sum * scale * scale;
}

// The curvature of a residual's own cost is left at that of the parabola which touches it and lies
// above: smaller for outliers, never too small for a step.
Slope slope_at(std::span<const double> residuals, std::span<const double> derivatives,
               double scale) {
  const std::size_t count = residuals.size();
  const std::size_t unknowns = derivatives.size() / count;
  std::vector<double> weights(count);
  for (std::size_t i = 0; i < count; ++i)
    weights[i] = 1 / std::sqrt(1 + residuals[i] * residuals[i] / (scale * scale));
  Slope slope{.gradient = std::vector<double>(unknowns),
              .curvature = std::vector<double>(unknowns * unknowns)};
  std::vector<double> weighted(count);
  for (std::size_t a = 0; a < unknowns; ++a) {
    const auto column = derivatives.subspan(a * count, count);
    for (std::size_t i = 0; i < count; ++i) {
      weighted[i] = weights[i] * column[i];
      slope.gradient[a] += weighted[i] * residuals[i];
    }
    for (std::size_t b = 0; b <= a; ++b) {
      const auto other = derivatives.subspan(b * count, count);
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += weighted[i] * other[i];
      slope.curvature[a * unknowns + b] = slope.curvature[b * unknowns + a] = sum;
    }
  }
  return slope;
}

// (curvature + damping * its diagonal) step = -gradient, by Cholesky. An unknown that nothing
// depends on stays. Empty where the matrix is not positive: more damping is needed.
std::vector<double> damped_step(const Slope& slope, double damping) {
  const std::size_t n = slope.gradient.size();
  std::vector<double> root(slope.curvature);
  for (std::size_t i = 0; i < n; ++i) {
    double& diagonal = root[i * n + i];
    diagonal = diagonal > 0 ? diagonal * (1 + damping) : 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = root[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= root[i * n + k] * root[j * n + k];
      if (i != j) {
        root[i * n + j] = sum / root[j * n + j];
      } else if (sum > 0 && std::isfinite(sum)) {
        root[i * n + i] = std::sqrt(sum);
      } else {
        return {};
      }
    }
  }
  std::vector<double> step(n);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = -slope.gradient[i];
    for (std::size_t k = 0; k < i; ++k) sum -= root[i * n + k] * step[k];
    step[i] = sum / root[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    double sum = step[i];
    for (std::size_t k = i + 1; k < n; ++k) sum -= root[k * n + i] * step[k];
    step[i] = sum / root[i * n + i];
  }
  return step;
}

std::vector<double> sum_of(std::span<const double> a, std::span<const double> b) {
  std::vector<double> sum(a.begin(), a.end());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

}  // namespace

LeastSquaresSolution least_squares(const LeastSquaresProblem& problem,
                                   std::span<const double> start,
                                   const LeastSquaresOptions& options) {
  LeastSquaresSolution found{.at = {start.begin(), start.end()}};
  std::vector<double> values(problem.residuals);
  std::vector<double> tried(problem.residuals);
  std::vector<double> derivatives(problem.residuals * start.size());
  problem.evaluate(found.at, values);
  found.cost = soft_cost(values, options.scale);
  double damping = kFirstDamping;
  while (found.steps < options.most_steps && !found.converged) {
    problem.differentiate(found.at, values, derivatives);
    const Slope slope = slope_at(values, derivatives, options.scale);
    bool stepped = false;
    double lowered = 0;  // part of the cost
    for (; !stepped && damping <= kMostDamping; damping *= kMoreDamping) {
      const std::vector<double> step = damped_step(slope, damping);
      if (step.empty()) continue;
      const std::vector<double> next = sum_of(found.at, step);
      problem.evaluate(next, tried);
      const double cost = soft_cost(tried, options.scale);
      stepped = cost < found.cost;
      if (!stepped) continue;
      lowered = 1 - cost / found.cost;
      found.at = next;
      found.cost = cost;
      values.swap(tried);
      ++found.steps;
    }
    damping = std::max(kLeastDamping, damping / kMoreDamping * kLessDamping);
    found.converged = lowered < options.tolerance;
  }
  return found;
}

void forward_differences(const LeastSquaresProblem& problem, std::span<const double> at,
                         std::span<const double> values, double step,
                         std::span<double> derivatives) {
  std::vector<double> near(at.begin(), at.end());
  for (std::size_t k = 0; k < at.size(); ++k) {
    near[k] = at[k] + step;
    const auto column = derivatives.subspan(k * values.size(), values.size());
    problem.evaluate(near, column);
    for (std::size_t i = 0; i < values.size(); ++i) column[i] = (column[i] - values[i]) / step;
    near[k] = at[k];
  }
}

}  // namespace assay::plan
