// Copies between buffers of one GPU, for ranks that share it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "base/result.h"
#include "comm/cuda/events.h"
#include "comm/cuda/one_gpu.h"

namespace assay::comm {

class DeviceCopy {
 public:
  explicit DeviceCopy(Copying how) : beside_(how == Copying::kBesideKernels) {}

  // After what the stream holds so far. By itself a copy within a device is a kernel, which keeps
  // others from the multiprocessors; asked to, the driver leaves it to the copy engines.
  base::Result<void> operator()(std::byte* to, const std::byte* from, std::size_t bytes,
                                cudaStream_t stream) {
    if (beside_) {
      cudaMemcpyAttributes attributes{};
      attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
      void* const tos[] = {to};
      const void* const froms[] = {from};
      std::size_t first = 0;  // the attributes are of all copies from this one on
      const cudaError_t done =
          cudaMemcpyBatchAsync(tos, froms, &bytes, 1, &attributes, &first, 1, stream);
      if (!is_missing(done)) return cuda_done(done, "copying between ranks");
      cudaGetLastError();
      beside_ = false;
    }
    return cuda_done(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                     "copying between ranks");
  }

 private:
  // Drivers from 12.8 on have it.
  static bool is_missing(cudaError_t status) {
    return status == cudaErrorNotSupported || status == cudaErrorCallRequiresNewerDriver ||
           status == cudaErrorSymbolNotFound;
  }

  bool beside_;
};

}  // namespace assay::comm
