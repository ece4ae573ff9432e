// Cross-entropy with an optional penalty on the size of log Z, and its gradient in one pass over
// the logits.
#include <algorithm>
#include <cmath>
#include <limits>
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

// The terms of a token's loss, from this rank's logits or from all.
struct Terms {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;     // of exp(logit - most)
  double target = 0;  // its logit

  [[nodiscard]] double log_z() const { return static_cast<double>(most) + std::log(sum); }
};

Terms terms_of(const float* logits, const Vocabulary& v, std::int64_t target) {
  Terms terms;
  if (v.columns > 0) terms.most = *std::max_element(logits, logits + v.columns);
  for (std::int64_t i = 0; i < v.columns; ++i) {
    terms.sum += static_cast<double>(std::exp(logits[i] - terms.most));
  }
  const std::int64_t column = target - v.first_token;
  if (column >= 0 && column < v.columns) terms.target = static_cast<double>(logits[column]);
  return terms;
}

// Combines the terms of all tensor-parallel ranks; `apart` is the number of rows per rank.
Terms together(const Matrix& all, std::int64_t token, std::int64_t apart) {
  Terms terms;
  for (std::int64_t row = token; row < all.rows; row += apart) {
    terms.most = std::max(terms.most, all.row(row)[0]);
  }
  for (std::int64_t row = token; row < all.rows; row += apart) {
    const float* of_rank = all.row(row);
    if (of_rank[1] != 0)
      terms.sum += static_cast<double>(of_rank[1] * std::exp(of_rank[0] - terms.most));
    terms.target += static_cast<double>(of_rank[2]);
  }
  return terms;
}

void write_gradient(float* logits, const Vocabulary& v, std::int64_t target, double log_z,
                    float z_loss, float weight) {
  // d/dlogits of log Z is the softmax, so the penalty only scales it.
  const auto times = weight * (1.0F + 2.0F * z_loss * static_cast<float>(log_z));
  const auto shift = static_cast<float>(log_z);
  for (std::int64_t i = 0; i < v.columns; ++i) logits[i] = times * std::exp(logits[i] - shift);
  const std::int64_t column = target - v.first_token;
  if (column >= 0 && column < v.columns) logits[column] -= weight;
}

}  // namespace

void loss_terms(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets,
                Matrix terms) {
  device.executed(step::OpKind::kLossTerms, {logits, targets}, {terms});
  device.ranges(logits.rows, kLossRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const Terms own = terms_of(logits.row(t), vocabulary, targets[t]);
      float* to = terms.row(t);
      to[0] = own.most;
      to[1] = static_cast<float>(own.sum);
      to[2] = static_cast<float>(own.target);
    }
  });
}

void loss(Device& device, Vocabulary vocabulary, Matrix logits, Tokens targets, Matrix terms,
          const StepSettings& settings, bool gradient, Matrix sums, bool adds) {
  device.executed(step::OpKind::kLoss, {logits, targets, terms}, {logits, sums});
  const auto weight = static_cast<float>(1.0 / settings.counted_targets);
  const auto z_loss = static_cast<float>(settings.z_loss);
  std::vector<LossSums> blocks(static_cast<std::size_t>((logits.rows + kLossRows - 1) / kLossRows));
  device.ranges(logits.rows, kLossRows, [&](std::int64_t first, std::int64_t last) {
    LossSums& block = blocks[static_cast<std::size_t>(first / kLossRows)];
    for (std::int64_t t = first; t < last; ++t) {
      float* row = logits.row(t);
      if (targets[t] < 0) {
        if (gradient) std::fill_n(row, logits.cols, 0.0F);
        continue;
      }
      const Terms all =
          terms.empty() ? terms_of(row, vocabulary, targets[t]) : together(terms, t, logits.rows);
      const double log_z = all.log_z();
      block.loss += log_z - all.target;
      block.z += log_z * log_z;
      block.count += 1;
      if (!gradient) continue;
      write_gradient(row, vocabulary, targets[t], log_z, z_loss, weight);
      std::fill(row + vocabulary.columns, row + logits.cols, 0.0F);
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
