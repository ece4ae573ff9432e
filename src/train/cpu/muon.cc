// Muon: updates a matrix by its momentum, orthogonalised with a few Newton-Schulz iterations.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "train/cpu/kernels.h"
#include "train/muon_coefficients.h"

namespace assay::train::cpu {
namespace {

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

void muon(Device& device, const StepSettings& settings, Matrix scalars, Matrix gradient,
          Matrix weight, Matrix momentum) {
  device.executed(step::Kind::kMuon, {gradient, scalars}, {weight, momentum});
  if (scalars.data[static_cast<std::size_t>(step::Scalar::kNonFinite)] != 0) return;
  const float clip = scalars.data[static_cast<std::size_t>(step::Scalar::kClip)];
  const auto beta = static_cast<float>(settings.muon_momentum);
  std::vector<float> update_memory;
  const Matrix update = over(update_memory, gradient.rows, gradient.cols);
  for (std::int64_t i = 0; i < gradient.rows * gradient.cols; ++i) {
    const float g = gradient.data[i] * clip;
    momentum.data[i] = beta * momentum.data[i] + (1 - beta) * g;
    update.data[i] = (1 - beta) * g + beta * momentum.data[i];  // Nesterov momentum
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
  // Tall matrices get a larger step per singular value, so that all outputs change equally.
  const double tall =
      std::max(1.0, static_cast<double>(weight.rows) / static_cast<double>(weight.cols));
  const auto rate = static_cast<float>(settings.muon_learning_rate * std::sqrt(tall));
  const auto keep = static_cast<float>(1.0 - settings.muon_learning_rate * settings.weight_decay);
  for (std::int64_t i = 0; i < weight.rows * weight.cols; ++i) {
    weight.data[i] = keep * weight.data[i] - rate * update.data[i];
  }
}

}  // namespace assay::train::cpu
