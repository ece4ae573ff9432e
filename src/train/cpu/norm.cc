// RMSNorm and LayerNorm, of rows or of the heads within them. The backward pass recomputes the row
// statistics, because it reads the row anyway.
#include <algorithm>
#include <cmath>
#include <vector>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kNormRows = 32;  // per block of the first summation of weight gradients

struct Statistics {
  float mean = 0;
  float scale = 0;  // 1 / standard deviation, or 1 / root mean square
};

Statistics statistics(NormShape shape, const float* x) {
  double mean = 0;
  if (shape.centred) {
    for (std::int64_t i = 0; i < shape.width; ++i) mean += static_cast<double>(x[i]);
    mean /= static_cast<double>(shape.width);
  }
  double square = 0;
  for (std::int64_t i = 0; i < shape.width; ++i) {
    const double away = static_cast<double>(x[i]) - mean;
    square += away * away;
  }
  const double scale = 1.0 / std::sqrt(square / static_cast<double>(shape.width) + shape.epsilon);
  return {static_cast<float>(mean), static_cast<float>(scale)};
}

// One row of the backward pass. `dweight` and `dbias` are the block's sums.
void row_grad(NormShape shape, const float* dh, const float* x, Matrix weight, const float* added,
              float* dx, float* dweight, float* dbias) {
  const Statistics s = statistics(shape, x);
  const auto width = static_cast<double>(shape.width);
  double along = 0;  // mean of gradient times normalised row
  double mean = 0;   // mean of the gradient
  for (std::int64_t i = 0; i < shape.width; ++i) {
    const float normal = (x[i] - s.mean) * s.scale;
    const float g = weight.empty() ? dh[i] : dh[i] * weight.data[i];
    along += static_cast<double>(g) * static_cast<double>(normal);
    mean += static_cast<double>(g);
    if (dweight != nullptr) dweight[i] += dh[i] * normal;
    if (dbias != nullptr) dbias[i] += dh[i];
  }
  const auto take_along = static_cast<float>(along / width);
  const float take_mean = shape.centred ? static_cast<float>(mean / width) : 0.0F;
  for (std::int64_t i = 0; i < shape.width; ++i) {
    const float normal = (x[i] - s.mean) * s.scale;
    const float g = weight.empty() ? dh[i] : dh[i] * weight.data[i];
    const float result = s.scale * (g - take_mean - normal * take_along);
    dx[i] = added != nullptr ? added[i] + result : result;
  }
}

void sum_blocks(const std::vector<float>& blocks, std::int64_t count, std::int64_t width,
                std::int64_t offset, Matrix out, bool adds) {
  if (out.empty()) return;
  for (std::int64_t i = 0; i < width; ++i) {
    float sum = adds ? out.data[i] : 0.0F;
    for (std::int64_t b = 0; b < count; ++b) {
      sum += blocks[static_cast<std::size_t>(b * 2 * width + offset + i)];
    }
    out.data[i] = sum;
  }
}

}  // namespace

void norm(Device& device, NormShape shape, Matrix x, Matrix weight, Matrix bias, Matrix h) {
  device.executed(shape.kind, {x, weight, bias}, {h});
  const std::int64_t heads = x.cols / shape.width;
  device.ranges(x.rows, kNormRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const float* from = x.row(t) + head * shape.width;
        float* to = h.row(t) + head * shape.width;
        const Statistics s = statistics(shape, from);
        for (std::int64_t i = 0; i < shape.width; ++i) {
          float value = (from[i] - s.mean) * s.scale;
          if (!weight.empty()) value *= weight.data[i];
          if (!bias.empty()) value += bias.data[i];
          to[i] = value;
        }
      }
    }
  });
}

void norm_grad(Device& device, NormShape shape, Matrix dh, Matrix x, Matrix weight, Matrix residual,
               Matrix dx, bool adds_dx, Matrix dweight, Matrix dbias, bool adds_weights) {
  device.executed(shape.kind, {dh, x, weight, residual}, {dx, dweight, dbias});
  const Matrix added = adds_dx ? dx : residual;
  const std::int64_t heads = x.cols / shape.width;
  const std::int64_t blocks = (x.rows + kNormRows - 1) / kNormRows;
  std::vector<float> sums(dweight.empty() ? 0 : static_cast<std::size_t>(blocks * 2 * shape.width));
  device.ranges(x.rows, kNormRows, [&](std::int64_t first, std::int64_t last) {
    float* block = sums.empty() ? nullptr : sums.data() + first / kNormRows * 2 * shape.width;
    float* bias = dbias.empty() ? nullptr : block + shape.width;
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t at = head * shape.width;
        row_grad(shape, dh.row(t) + at, x.row(t) + at, weight,
                 added.empty() ? nullptr : added.row(t) + at, dx.row(t) + at, block, bias);
      }
    }
  });
  sum_blocks(sums, blocks, shape.width, 0, dweight, adds_weights);
  sum_blocks(sums, blocks, shape.width, shape.width, dbias, adds_weights);
}

}  // namespace assay::train::cpu
