// Numbers to time matrix products on, and a way to compare what two ways of making one gave.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kRandomThreads = 256;

// Between -1 and 1, in the unit of an activation.
__global__ void __launch_bounds__(kRandomThreads) random_kernel(Half* data, std::int64_t elements) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRandomThreads * 8;
  for (std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kRandomThreads + threadIdx.x) * 8;
       at < elements; at += step) {
    float x[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const auto die = static_cast<int>(mixed(static_cast<std::uint32_t>(at + j)));
      x[j] = static_cast<float>(die) * 0x1p-31F;
    }
    store8(data + at, narrow(x));
  }
}

// Four numbers at a time, with exponents as a quantised matrix has them, and none that is no
// number.
__global__ void __launch_bounds__(kRandomThreads)
    random_fp8_kernel(std::uint32_t* data, std::int64_t words) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRandomThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kRandomThreads + threadIdx.x;
       at < words; at += step) {
    const std::uint32_t die = mixed(static_cast<std::uint32_t>(at));
    const std::uint32_t other = mixed(die);
    constexpr std::uint32_t kSignsAndMantissas = 0x87878787U;
    constexpr std::uint32_t kSmallExponents = 0x18181818U;
    constexpr std::uint32_t kLeast = 0x50505050U;
    data[at] = (die & kSignsAndMantissas) | ((other & kSmallExponents) + kLeast);
  }
}

// Sums with signs by chance, so that an element in another's place is noticed, and of squares.
__global__ void __launch_bounds__(kRandomThreads)
    fingerprint_kernel(const Half* data, std::int64_t elements, double* sums) {
  __shared__ double shared[2][kWarp];
  double both[2] = {0, 0};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRandomThreads;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kRandomThreads + threadIdx.x;
       at < elements; at += step) {
    const auto value = static_cast<double>(widen(data[at]));
    both[0] += (mixed(static_cast<std::uint32_t>(at)) & 1U) != 0 ? value : -value;
    both[1] += value * value;
  }
  block_sum(both, shared);
  if (threadIdx.x != 0) return;
  sums[2 * blockIdx.x] = both[0];
  sums[2 * blockIdx.x + 1] = both[1];
}

constexpr int kFingerprintBlocks = 1024;
static_assert(2 * kFingerprintBlocks <= kSums);

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

Fingerprint fingerprint(Device& device, Matrix m) {
  fingerprint_kernel<<<kFingerprintBlocks, kRandomThreads, 0, device.stream>>>(
      m.as<Half>(), m.rows * m.cols, device.workspace.sums);
  double sums[2 * kFingerprintBlocks];
  device.check(cudaMemcpyAsync(sums, device.workspace.sums, sizeof sums, cudaMemcpyDeviceToHost,
                               device.stream),
               "fingerprint");
  device.check(cudaStreamSynchronize(device.stream), "fingerprint");
  Fingerprint print;
  for (int i = 0; i < kFingerprintBlocks; ++i) {
    print.sum += sums[2 * i];
    print.squares += sums[2 * i + 1];
  }
  return print;
}

}  // namespace assay::train::cuda
