// Collectives between ranks: passes the floats in the arena to the communicator.
#include "base/check.h"
#include "train/cpu/kernels.h"

namespace assay::train::cpu {

base::Result<void> collective(Device& device, comm::Communicator& ranks, step::Kind kind, Matrix in,
                              Matrix out) {
  using comm::Dtype;
  using comm::Reduction;
  device.executed(kind, {in}, {out});
  const std::int64_t all = ranks.ranks();
  if (kind == step::Kind::kReduceScatter) {
    ASSAY_CHECK(in.cols == out.cols * all, "ranks must receive equal ranges");
    return ranks.reduce_scatter(in.data, out.data, out.cols, Dtype::kF32, Reduction::kSum);
  }
  if (kind == step::Kind::kAllGather) {
    ASSAY_CHECK(in.cols * all == out.cols, "ranks must send equal ranges");
    return ranks.all_gather(in.data, out.data, in.cols, Dtype::kF32);
  }
  ASSAY_CHECK(in.cols == out.cols, "input and output must have the same length");
  return ranks.all_reduce(in.data, out.data, out.cols, Dtype::kF32, Reduction::kSum);
}

}  // namespace assay::train::cpu
