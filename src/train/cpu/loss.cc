// Cross-entropy with an optional penalty on the size of log Z, and its gradient in one pass over
// the logits.
#include <algorithm>
#include <cmath>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kLossRows = 16;

struct LossSums {
  double loss = 0;
  double z = 0;
  double count = 0;
};

void one_token(float* logits, std::int64_t vocab, std::int32_t target, float z_loss, float weight,
               bool gradient, LossSums& sums) {
  const float most = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (std::int64_t i = 0; i < vocab; ++i) {
    sum += static_cast<double>(std::exp(logits[i] - most));
  }
  const double log_z = static_cast<double>(most) + std::log(sum);
  sums.loss += log_z - static_cast<double>(logits[target]);
  sums.z += log_z * log_z;
  sums.count += 1;
  if (!gradient) return;
  // d/dlogits of log Z is the softmax, so the penalty only scales it.
  const auto times = weight * (1.0F + 2.0F * z_loss * static_cast<float>(log_z));
  const auto shift = static_cast<float>(log_z);
  for (std::int64_t i = 0; i < vocab; ++i) logits[i] = times * std::exp(logits[i] - shift);
  logits[target] -= weight;
}

}  // namespace

void loss(Device& device, std::int64_t vocab, Matrix logits, Tokens targets,
          const StepSettings& settings, bool gradient, Matrix sums, bool adds) {
  device.executed(step::Kind::kLoss, {logits, targets}, {logits, sums});
  const auto weight = static_cast<float>(1.0 / settings.counted_targets);
  const auto z_loss = static_cast<float>(settings.z_loss);
  std::vector<LossSums> blocks(static_cast<std::size_t>((logits.rows + kLossRows - 1) / kLossRows));
  device.ranges(logits.rows, kLossRows, [&](std::int64_t first, std::int64_t last) {
    LossSums& block = blocks[static_cast<std::size_t>(first / kLossRows)];
    for (std::int64_t t = first; t < last; ++t) {
      if (targets[t] >= 0) {
        one_token(logits.row(t), vocab, targets[t], z_loss, weight, gradient, block);
        if (gradient) std::fill(logits.row(t) + vocab, logits.row(t) + logits.cols, 0.0F);
      } else if (gradient) {
        std::fill_n(logits.row(t), logits.cols, 0.0F);
      }
    }
  });
  LossSums all;
  for (const LossSums& block : blocks) {
    all.loss += block.loss;
    all.z += block.z;
    all.count += block.count;
  }
  const auto add = [&](step::Scalar scalar, double value) {
    float& sum = sums.data[static_cast<std::size_t>(scalar)];
    sum = (adds ? sum : 0.0F) + static_cast<float>(value);
  };
  add(step::Scalar::kLossSum, all.loss);
  add(step::Scalar::kZLossSum, all.z);
  add(step::Scalar::kCount, all.count);
}

}  // namespace assay::train::cpu
