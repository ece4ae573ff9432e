// Sums over micro-batches, the norm of the gradients, and AdamW. A step whose gradients are not
// finite changes nothing.
#include <algorithm>
#include <cmath>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kUpdateBlock = 16384;

float& scalar(float* scalars, step::Scalar which) {
  return scalars[static_cast<std::size_t>(which)];
}

}  // namespace

// Row after row: (((previous + first) + second) + …).
void fold(Device& device, Matrix addends, Matrix sum, bool adds) {
  device.executed(step::Kind::kFold, {addends}, {sum});
  device.ranges(sum.cols, kUpdateBlock, [&](std::int64_t first, std::int64_t last) {
    std::int64_t row = 0;
    if (!adds) std::copy(addends.row(row) + first, addends.row(row) + last, sum.data + first);
    if (!adds) ++row;
    for (; row < addends.rows; ++row) {
      const float* from = addends.row(row);
      for (std::int64_t i = first; i < last; ++i) sum.data[i] += from[i];
    }
  });
}

void norm_sums(Device& device, std::int64_t block, std::span<const Matrix> gradients,
               std::span<const Matrix> sums) {
  device.executed(step::Kind::kNormSums, {gradients.begin(), gradients.end()},
                  {sums.begin(), sums.end()});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Matrix& gradient = gradients[i];
    device.ranges(gradient.cols, block, [&](std::int64_t first, std::int64_t last) {
      double part = 0;
      for (std::int64_t at = first; at < last; ++at) {
        part += static_cast<double>(gradient.data[at]) * static_cast<double>(gradient.data[at]);
      }
      sums[i].data[first / block] = static_cast<float>(part);
    });
  }
}

void gradient_norm(Device& device, std::span<const Matrix> sums, double clip, Matrix scalars) {
  device.executed(step::Kind::kGradientNorm, {sums.begin(), sums.end()}, {scalars});
  float* results = scalars.data;
  double square = 0;
  for (const Matrix& part : sums) {
    for (std::int64_t row = 0; row < part.rows; ++row) {
      for (std::int64_t i = 0; i < part.cols; ++i) square += static_cast<double>(part.row(row)[i]);
    }
  }
  const double norm = std::sqrt(square);
  const bool finite = std::isfinite(norm);
  scalar(results, step::Scalar::kNorm) = static_cast<float>(norm);
  scalar(results, step::Scalar::kClip) =
      clip > 0 && norm > clip ? static_cast<float>(clip / norm) : 1.0F;
  scalar(results, step::Scalar::kNonFinite) = finite ? 0.0F : 1.0F;
}

// Adds micro-batches in their order, taking one from each rank in turn.
void step_sums(Device& device, Matrix by_rank, Matrix sums) {
  device.executed(step::Kind::kStepSums, {by_rank}, {sums});
  std::fill_n(sums.data, sums.cols, 0.0F);
  for (std::int64_t first = 0; first < by_rank.cols; first += sums.cols) {
    for (std::int64_t rank = 0; rank < by_rank.rows; ++rank) {
      for (std::int64_t i = 0; i < sums.cols; ++i) sums.data[i] += by_rank.row(rank)[first + i];
    }
  }
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
