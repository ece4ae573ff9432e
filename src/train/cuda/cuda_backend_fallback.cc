// Where CUDA was not there when Assay was built: the room's whole content.
#include "base/error.h"
#include "train/cuda/cuda_backend.h"

namespace assay::train::cuda {

base::Result<std::unique_ptr<CudaBackend>> make_cuda_backend(const CudaOptions&) {
  return base::fail(
      base::unfit_error("cuda", "this assay was built without CUDA",
                        "build it where nvcc 13 and cuDNN are, after scripts/setup cuda"));
}

}  // namespace assay::train::cuda
