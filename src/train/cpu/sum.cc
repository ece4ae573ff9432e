// Sums the addends of tensor-parallel ranks, in rank order.
#include "train/cpu/kernels.h"

namespace assay::train::cpu {

void sum(Device& device, Matrix addends, Matrix residual, Matrix bias, Matrix sum) {
  device.executed(step::Kind::kSum, {addends, residual, bias}, {sum});
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

}  // namespace assay::train::cpu
