#include "spec/recipe.h"

#include <algorithm>
#include <cmath>

namespace assay::spec {
namespace {

// Llama 3 8B.
constexpr double kRate = 3e-4;
constexpr double kWidth = 4096;

}  // namespace

// More digits would suggest a precision that nobody intends.
double two_digits(double rate) {
  const double digits = std::pow(10.0, 1 - std::floor(std::log10(rate)));
  return std::round(rate * digits) / digits;
}

double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step) {
  constexpr double kTokens = 4'194'304;
  constexpr double kMost = 3e-3;
  if (dim <= 0 || tokens_per_step <= 0) return kRate;
  const double rate = kRate * kWidth / static_cast<double>(dim) *
                      std::sqrt(static_cast<double>(tokens_per_step) / kTokens);
  return std::min(kMost, two_digits(rate));
}

double usual_rise(std::int64_t dim) {
  constexpr double kSteps = 2000;
  return kRate / kSteps * kWidth / static_cast<double>(std::max<std::int64_t>(1, dim));
}

std::int64_t usual_warmup(std::int64_t dim, double rate, std::int64_t steps) {
  constexpr std::int64_t kLong = 2000;
  const auto rising = static_cast<std::int64_t>(std::ceil(rate / usual_rise(dim)));
  const std::int64_t least = std::min(kLong, steps / 10);
  return std::clamp<std::int64_t>(std::max(rising, least), 1, std::max<std::int64_t>(1, steps / 3));
}

}  // namespace assay::spec
