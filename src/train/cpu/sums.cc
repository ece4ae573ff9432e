// Sums in a fixed order: of the addends of tensor-parallel ranks, of gradients and losses over
// micro-batches, and of the squares of gradients.
#include <algorithm>

#include "train/cpu/kernels.h"

namespace assay::train::cpu {
namespace {

constexpr std::int64_t kFoldBlock = 16384;

}  // namespace

// In rank order.
void sum(Device& device, Matrix addends, Matrix residual, Matrix bias, Matrix sum) {
  device.executed(step::OpKind::kSum, {addends, residual, bias}, {sum});
  constexpr std::int64_t kSumRows = 32;
  device.ranges(sum.rows, kSumRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      float* to = sum.row(t);
      for (std::int64_t i = 0; i < sum.cols; ++i) {
        float all = 0;
        for (std::int64_t rank = 0; rank < addends.rows; ++rank) {
          all += addends.row(rank)[t * sum.cols + i];
        }
        if (!residual.empty()) all += residual.row(t)[i];
        if (!bias.empty()) all += bias.data[i];
        to[i] = all;
      }
    }
  });
}

// Row after row: (((previous + first) + second) + …).
void fold(Device& device, Matrix addends, Matrix sum, bool adds) {
  device.executed(step::OpKind::kFold, {addends}, {sum});
  device.ranges(sum.cols, kFoldBlock, [&](std::int64_t first, std::int64_t last) {
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
  device.executed(step::OpKind::kNormSums, {gradients.begin(), gradients.end()},
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

// Adds micro-batches in their order, taking one from each rank in turn.
void step_sums(Device& device, Matrix by_rank, Matrix sums) {
  device.executed(step::OpKind::kStepSums, {by_rank}, {sums});
  std::fill_n(sums.data, sums.cols, 0.0F);
  for (std::int64_t first = 0; first < by_rank.cols; first += sums.cols) {
    for (std::int64_t rank = 0; rank < by_rank.rows; ++rank) {
      for (std::int64_t i = 0; i < sums.cols; ++i) sums.data[i] += by_rank.row(rank)[first + i];
    }
  }
}

}  // namespace assay::train::cpu
