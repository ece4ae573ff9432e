// Replaces NCCL in builds without CUDA.
#include "base/error.h"
#include "comm/cuda/nccl.h"

namespace assay::comm {

base::Result<std::unique_ptr<Communicator>> connect_nccl(const NcclOptions&, KeyValue&) {
  return base::fail(base::unfit_error("cuda", "this assay was built without CUDA"));
}

}  // namespace assay::comm
