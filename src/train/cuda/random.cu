// Random operands for timing matrix products: zeros would give unrealistically short times.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kRandomThreads = 256;

// Between -1 and 1, the magnitude of activations.
__global__ void __launch_bounds__(kRandomThreads) random_kernel(Half* data, std::int64_t elements) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRandomThreads * 8;
  for (std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kRandomThreads + threadIdx.x) * 8;
       at < elements; at += step) {
    float x[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const auto bits = static_cast<int>(mixed(static_cast<std::uint32_t>(at + j)));
      x[j] = static_cast<float>(bits) * 0x1p-31F;
    }
    store8(data + at, narrow(x));
  }
}

// Four fp8 numbers at a time, with the exponents of a quantised matrix and without NaNs.
__global__ void __launch_bounds__(kRandomThreads)
    random_fp8_kernel(std::uint32_t* data, std::int64_t words) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRandomThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kRandomThreads + threadIdx.x;
       at < words; at += step) {
    const std::uint32_t bits = mixed(static_cast<std::uint32_t>(at));
    const std::uint32_t other = mixed(bits);
    constexpr std::uint32_t kSignsAndMantissas = 0x87878787U;
    constexpr std::uint32_t kSmallExponents = 0x18181818U;
    constexpr std::uint32_t kLeast = 0x50505050U;
    data[at] = (bits & kSignsAndMantissas) | ((other & kSmallExponents) + kLeast);
  }
}

}  // namespace

void fill_random(Device& device, void* data, std::int64_t elements) {
  random_kernel<<<kSquareBlocks, kRandomThreads, 0, device.stream>>>(static_cast<Half*>(data),
                                                                     elements / 8 * 8);
  device.launched("random numbers");
}

void fill_random_fp8(Device& device, void* data, std::int64_t elements) {
  random_fp8_kernel<<<kSquareBlocks, kRandomThreads, 0, device.stream>>>(
      static_cast<std::uint32_t*>(data), elements / 4);
  device.launched("random numbers");
}

}  // namespace assay::train::cuda
