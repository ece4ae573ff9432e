#include "spec/model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay::spec {
namespace {

double scaled(const ModelSpec& m, double frequency) {
  if (m.rope_factor == 1) return frequency;
  const double turns = static_cast<double>(m.rope_context) * frequency / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - m.rope_low) / (m.rope_high - m.rope_low), 0.0, 1.0);
  return kept * frequency + (1 - kept) * frequency / m.rope_factor;
}

}  // namespace

std::vector<double> rope_frequencies(const ModelSpec& model) {
  std::vector<double> frequencies(static_cast<std::size_t>(model.head_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(model.head_dim);
    frequencies[i] = scaled(model, std::pow(model.rope_theta, exponent));
  }
  return frequencies;
}

}  // namespace assay::spec
