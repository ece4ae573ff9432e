// A copy within one GPU that runs concurrently with compute kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace assay::comm {

// Queued on the stream. The driver's own copies within a device always occupy all multiprocessors,
// so they run before or after a matrix product. This kernel is one warp per multiprocessor, small
// enough for the registers that a matrix product leaves free.
cudaError_t copy_beside_kernels(std::byte* to, const std::byte* from, std::size_t bytes,
                                cudaStream_t stream);

}  // namespace assay::comm
