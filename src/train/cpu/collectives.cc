// What ranks do together: the floats go to the communicator as they lie in the arena.
#include "base/check.h"
#include "train/cpu/kernels.h"

namespace assay::train::cpu {

base::Result<void> collective(Device& device, comm::Communicator& ranks, step::Kind kind, Matrix in,
                              Matrix out) {
  using comm::Dtype;
  using comm::Reduction;
  device.did(kind, {in}, {out});
  const std::int64_t all = ranks.ranks();
  if (kind == step::Kind::kReduceScatter) {
    ASSAY_CHECK(in.cols == out.cols * all, "ranks take equal ranges");
    return ranks.reduce_scatter(in.data, out.data, out.cols, Dtype::kF32, Reduction::kSum);
  }
  if (kind == step::Kind::kAllGather) {
    ASSAY_CHECK(in.cols * all == out.cols, "ranks bring equal ranges");
    return ranks.all_gather(in.data, out.data, in.cols, Dtype::kF32);
  }
  ASSAY_CHECK(in.cols == out.cols, "a sum is as long as what is summed");
  return ranks.all_reduce(in.data, out.data, out.cols, Dtype::kF32, Reduction::kSum);
}

}  // namespace assay::train::cpu
