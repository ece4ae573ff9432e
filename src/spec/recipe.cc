#include "spec/recipe.h"

#include <algorithm>
#include <cmath>

namespace assay::spec {

double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step) {
  constexpr double kRate = 3e-4;
  constexpr double kWidth = 4096;
  constexpr double kTokens = 4'194'304;
  constexpr double kMost = 3e-3;
  if (dim <= 0 || tokens_per_step <= 0) return kRate;
  const double rate = kRate * kWidth / static_cast<double>(dim) *
                      std::sqrt(static_cast<double>(tokens_per_step) / kTokens);
  // Rounded: nobody means the digits after these.
  const double digits = std::pow(10.0, 1 - std::floor(std::log10(rate)));
  return std::min(kMost, std::round(rate * digits) / digits);
}

std::int64_t usual_warmup(std::int64_t steps) {
  constexpr std::int64_t kMost = 2000;
  return std::clamp<std::int64_t>(steps / 10, 1, kMost);
}

}  // namespace assay::spec
