// The norm of the gradients, and updates: AdamW, and Muon, which updates a matrix by its momentum,
// orthogonalised with a few Newton-Schulz iterations. A step whose gradients are not finite changes
// nothing.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "train/cpu/kernels.h"
#include "train/step_settings.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kUpdateBlock = 16384;

float& scalar(float* scalars, step::Scalar which) {
  return scalars[static_cast<std::size_t>(which)];
}

using muon_iteration::kCubic;
using muon_iteration::kIterations;
using muon_iteration::kLinear;
using muon_iteration::kQuintic;

Matrix over(std::vector<float>& memory, std::int64_t rows, std::int64_t cols) {
  memory.resize(static_cast<std::size_t>(rows * cols));
  return {memory.data(), rows, cols, cols};
}

// Makes x nearly orthogonal; x has at most as many rows as columns.
void orthogonalise(Device& device, Matrix x) {
  double square = 0;
  for (std::int64_t i = 0; i < x.rows * x.cols; ++i) {
    square += static_cast<double>(x.data[i]) * static_cast<double>(x.data[i]);
  }
  const auto scale = static_cast<float>(1.0 / (std::sqrt(square) + 1e-7));
  for (std::int64_t i = 0; i < x.rows * x.cols; ++i) x.data[i] *= scale;
  std::vector<float> gram_memory;
  std::vector<float> square_memory;
  std::vector<float> next_memory;
  const Matrix gram = over(gram_memory, x.rows, x.rows);
  const Matrix mixed = over(square_memory, x.rows, x.rows);
  const Matrix next = over(next_memory, x.rows, x.cols);
  for (int i = 0; i < kIterations; ++i) {
    multiply_rows(device, {.transpose_b = true}, x, x, {}, {}, gram);
    multiply_rows(device, {}, gram, gram, {}, {}, mixed);
    for (std::int64_t j = 0; j < x.rows * x.rows; ++j) {
      mixed.data[j] = kCubic * gram.data[j] + kQuintic * mixed.data[j];
    }
    multiply_rows(device, {}, mixed, x, {}, {}, next);
    for (std::int64_t j = 0; j < x.rows * x.cols; ++j) {
      x.data[j] = kLinear * x.data[j] + next.data[j];
    }
  }
}

void transpose(Matrix from, Matrix to) {
  for (std::int64_t i = 0; i < from.rows; ++i) {
    for (std::int64_t j = 0; j < from.cols; ++j) to.row(j)[i] = from.row(i)[j];
  }
}

}  // namespace

void gradient_norm(Device& device, std::span<const Matrix> sums, double clip, Matrix scalars) {
  device.executed(step::OpKind::kGradientNorm, {sums.begin(), sums.end()}, {scalars});
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

void adamw(Device& device, const StepSettings& settings, bool decays, Matrix scalars,
           Matrix gradient, Matrix weight, Matrix first_moment, Matrix second_moment) {
  device.executed(step::OpKind::kAdamw, {gradient, scalars}, {weight, first_moment, second_moment});
  if (scalars.data[static_cast<std::size_t>(step::Scalar::kNonFinite)] != 0) return;
  const float clip = scalars.data[static_cast<std::size_t>(step::Scalar::kClip)];
  const AdamwNumbers n = adamw_numbers(settings, decays);
  device.ranges(weight.cols, kUpdateBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = gradient.data[i] * clip;
      const float m = n.beta1 * first_moment.data[i] + (1 - n.beta1) * g;
      const float v = n.beta2 * second_moment.data[i] + (1 - n.beta2) * g * g;
      first_moment.data[i] = m;
      second_moment.data[i] = v;
      weight.data[i] = n.keep * weight.data[i] -
                       n.rate * (m * n.correct1) / (std::sqrt(v * n.correct2) + n.epsilon);
    }
  });
}

void muon(Device& device, const StepSettings& settings, Matrix scalars, Matrix gradient,
          Matrix weight, Matrix momentum) {
  device.executed(step::OpKind::kMuon, {gradient, scalars}, {weight, momentum});
  if (scalars.data[static_cast<std::size_t>(step::Scalar::kNonFinite)] != 0) return;
  const float clip = scalars.data[static_cast<std::size_t>(step::Scalar::kClip)];
  const MuonNumbers n = muon_numbers(settings, weight.rows, weight.cols);
  std::vector<float> update_memory;
  const Matrix update = over(update_memory, gradient.rows, gradient.cols);
  for (std::int64_t i = 0; i < gradient.rows * gradient.cols; ++i) {
    const float g = gradient.data[i] * clip;
    momentum.data[i] = n.beta * momentum.data[i] + (1 - n.beta) * g;
    update.data[i] = (1 - n.beta) * g + n.beta * momentum.data[i];  // Nesterov momentum
  }
  if (update.rows <= update.cols) {
    orthogonalise(device, update);
  } else {
    std::vector<float> turned_memory;
    const Matrix turned = over(turned_memory, update.cols, update.rows);
    transpose(update, turned);
    orthogonalise(device, turned);
    transpose(turned, update);
  }
  for (std::int64_t i = 0; i < weight.rows * weight.cols; ++i) {
    weight.data[i] = n.keep * weight.data[i] - n.rate * update.data[i];
  }
}

}  // namespace assay::train::cpu
