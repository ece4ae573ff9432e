// Replaces the whole module in builds without CUDA.
#include "base/error.h"
#include "comm/cuda/one_gpu.h"

namespace assay::comm {

base::Result<std::vector<std::unique_ptr<Communicator>>> make_one_gpu(int, int,
                                                                      const OneGpuOptions&) {
  return base::fail(base::unfit_error("cuda", "this assay was built without CUDA"));
}

}  // namespace assay::comm
