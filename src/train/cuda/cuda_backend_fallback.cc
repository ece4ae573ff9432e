// Replaces the whole module in builds without CUDA.
#include "base/error.h"
#include "train/cuda/cuda_backend.h"

namespace assay::train::cuda {

base::Result<std::unique_ptr<CudaBackend>> make_cuda_backend(const CudaOptions&) {
  return base::fail(base::unfit_error(
      "cuda", "this assay was built without CUDA",
      "run scripts/setup cuda, which installs nvcc 13 and cuDNN, and build again"));
}

int device_count() {
  return 0;
}

}  // namespace assay::train::cuda
