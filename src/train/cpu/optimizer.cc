// The norm of the gradients, and AdamW. A step whose gradients are not finite changes nothing.
#include <cmath>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kUpdateBlock = 16384;

float& scalar(float* scalars, step::Scalar which) {
  return scalars[static_cast<std::size_t>(which)];
}

double norm_of(Device& device, std::span<const Matrix> gradients) {
  double sum = 0;
  for (const Matrix& gradient : gradients) {
    std::vector<double> blocks(
        static_cast<std::size_t>((gradient.cols + kUpdateBlock - 1) / kUpdateBlock));
    device.ranges(gradient.cols, kUpdateBlock, [&](std::int64_t first, std::int64_t last) {
      double part = 0;
      for (std::int64_t i = first; i < last; ++i) {
        part += static_cast<double>(gradient.data[i]) * static_cast<double>(gradient.data[i]);
      }
      blocks[static_cast<std::size_t>(first / kUpdateBlock)] = part;
    });
    for (const double block : blocks) sum += block;
  }
  return std::sqrt(sum);
}

}  // namespace

void range_norm(Device& device, std::span<const Matrix> gradients, Matrix norm) {
  device.executed(step::Kind::kRangeNorm, {gradients.begin(), gradients.end()}, {norm});
  norm.data[0] = static_cast<float>(norm_of(device, gradients));
}

void gradient_norm(Device& device, std::span<const Matrix> gradients, double clip, Matrix scalars) {
  device.executed(step::Kind::kGradientNorm, {gradients.begin(), gradients.end()}, {scalars});
  float* results = scalars.data;
  const double norm = norm_of(device, gradients);
  const bool finite = std::isfinite(norm);
  scalar(results, step::Scalar::kNorm) = static_cast<float>(norm);
  scalar(results, step::Scalar::kClip) =
      clip > 0 && norm > clip ? static_cast<float>(clip / norm) : 1.0F;
  scalar(results, step::Scalar::kNonFinite) = finite ? 0.0F : 1.0F;
}

void adamw(Device& device, const StepSettings& settings, bool decays, Matrix scalars,
           Matrix gradient, Matrix weight, Matrix first_moment, Matrix second_moment) {
  device.executed(step::Kind::kAdamw, {gradient, scalars}, {weight, first_moment, second_moment});
  if (scalars.data[static_cast<std::size_t>(step::Scalar::kNonFinite)] != 0) return;
  const float clip = scalars.data[static_cast<std::size_t>(step::Scalar::kClip)];
  const auto steps = static_cast<double>(settings.step);
  const auto beta1 = static_cast<float>(settings.beta1);
  const auto beta2 = static_cast<float>(settings.beta2);
  const auto rate = static_cast<float>(settings.learning_rate);
  const auto correct1 = static_cast<float>(1.0 / (1.0 - std::pow(settings.beta1, steps)));
  const auto correct2 = static_cast<float>(1.0 / (1.0 - std::pow(settings.beta2, steps)));
  const auto epsilon = static_cast<float>(settings.epsilon);
  const float keep =
      decays ? static_cast<float>(1.0 - settings.learning_rate * settings.weight_decay) : 1.0F;
  device.ranges(weight.cols, kUpdateBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = gradient.data[i] * clip;
      const float m = beta1 * first_moment.data[i] + (1 - beta1) * g;
      const float v = beta2 * second_moment.data[i] + (1 - beta2) * g * g;
      first_moment.data[i] = m;
      second_moment.data[i] = v;
      weight.data[i] =
          keep * weight.data[i] - rate * (m * correct1) / (std::sqrt(v * correct2) + epsilon);
    }
  });
}

}  // namespace assay::train::cpu
