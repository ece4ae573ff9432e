#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "comm/cuda/copy_kernel.h"

namespace assay::comm {
namespace {

// Matrix products of cuBLAS keep one block of 384 threads with 168 registers each on a
// multiprocessor: of its 65,536 registers they leave 1,024, which is one warp with 32.
constexpr int kThreads = 32;
constexpr int kRegisters = 32;
// 16-byte loads in flight per thread; more do not fit into the registers.
constexpr int kUnroll = 4;
constexpr int kTile = kThreads * kUnroll;
// Blocks per multiprocessor. Next to a product they run one at a time. When nothing computes, for
// example while tensor-parallel ranks wait for activations, all of them run: with tp 2, one block
// gave 0.86 of a single rank's speed, four 0.91, eight 0.92 (bench/results/ranks.md).
constexpr std::size_t kBlocks = 8;

__global__ void __maxnreg__(kRegisters)
    copy_between_ranks(uint4* __restrict__ to, const uint4* __restrict__ from, std::size_t vectors,
                       std::size_t tail) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kTile;
  const uint4* end = from + vectors / kTile * kTile;
  const uint4* source = from + static_cast<std::size_t>(blockIdx.x) * kTile + threadIdx.x;
  uint4* target = to + (source - from);
  // Copied data is read once: it should not evict the operands of products from the cache.
  for (; source < end; source += stride, target += stride) {
    uint4 values[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) values[i] = __ldcs(source + i * kThreads);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) __stcs(target + i * kThreads, values[i]);
  }
  if (blockIdx.x != 0) return;
  for (std::size_t i = vectors / kTile * kTile + threadIdx.x; i < vectors; i += kThreads) {
    to[i] = from[i];
  }
  if (threadIdx.x < tail) {
    const auto* last = reinterpret_cast<const char*>(from + vectors);
    reinterpret_cast<char*>(to + vectors)[threadIdx.x] = last[threadIdx.x];
  }
}

bool aligned(const void* place) {
  return reinterpret_cast<std::uintptr_t>(place) % 16 == 0;
}

}  // namespace

cudaError_t copy_beside_kernels(std::byte* to, const std::byte* from, std::size_t bytes,
                                cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!aligned(to) || !aligned(from)) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  int device = 0;
  int multiprocessors = 0;
  if (const cudaError_t status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const cudaError_t status =
          cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess) {
    return status;
  }
  const std::size_t vectors = bytes / 16;
  const std::size_t tiles = std::max<std::size_t>(1, (vectors + kTile - 1) / kTile);
  const auto blocks =
      static_cast<unsigned>(std::min(tiles, static_cast<std::size_t>(multiprocessors) * kBlocks));
  copy_between_ranks<<<blocks, kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), vectors, bytes % 16);
  return cudaGetLastError();
}

}  // namespace assay::comm
