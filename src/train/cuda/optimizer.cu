// The norm of the gradients, and AdamW. A step with non-finite gradients changes nothing; that is
// decided on the device, so the host does not wait.
//
// AdamW's arithmetic is written operation by operation, without fusing, so that the host can repeat
// it bit for bit.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kOptimizerThreads = 256;
constexpr int kOptimizerSumThreads = 1024;

__global__ void __launch_bounds__(kOptimizerThreads)
    square_kernel(const Half* gradient, std::int64_t vectors, double* sums) {
  __shared__ double shared[1][kWarp];
  double sum[1] = {0};
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kOptimizerThreads;
#pragma unroll 4
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kOptimizerThreads + threadIdx.x;
       i < vectors; i += step) {
    float g[8];
    widen(load8(gradient + i * 8), g);
    // fp32 is enough for eight squares: if they differ much in size the small ones do not matter,
    // and an overflow counts as infinite.
    float part = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) part += g[j] * g[j];
    sum[0] += static_cast<double>(part);
  }
  block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum[0];
}

__global__ void __launch_bounds__(kOptimizerSumThreads)
    norm_of_squares_kernel(const double* sums, int count, double clip, float* scalars) {
  __shared__ double shared[1][kWarp];
  double sum[1] = {0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kOptimizerSumThreads)
    sum[0] += sums[i];
  block_sum(sum, shared);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(sum[0]);
  scalars[kNormIndex] = static_cast<float>(norm);
  scalars[kClipIndex] = clip > 0 && norm > clip ? static_cast<float>(clip / norm) : 1.0F;
  scalars[kNonFiniteIndex] = isfinite(norm) ? 0.0F : 1.0F;
}

struct AdamwArguments {
  const float* scalars;
  const Half* gradient;
  Half* weight;
  Half* remainder;
  Half* first;
  Half* second;
  std::int64_t vectors;
  AdamwNumbers n;
};

__device__ Half half_of(const uint4& raw, int j) {
  const std::uint32_t word = j < 2 ? raw.x : j < 4 ? raw.y : j < 6 ? raw.z : raw.w;
  return static_cast<Half>(j % 2 == 0 ? word : word >> 16);
}

__device__ uint4 halves(const Half (&h)[8]) {
  const auto two = [&](int i) {
    return static_cast<std::uint32_t>(h[i]) | (static_cast<std::uint32_t>(h[i + 1]) << 16);
  };
  return {two(0), two(2), two(4), two(6)};
}

__global__ void __launch_bounds__(kOptimizerThreads) adamw_kernel(AdamwArguments a) {
  const std::int64_t vector =
      static_cast<std::int64_t>(blockIdx.x) * kOptimizerThreads + threadIdx.x;
  if (vector >= a.vectors) return;
  const std::int64_t at = vector * 8;
  const uint4 raw_g = load8(a.gradient + at);
  const uint4 raw_w = load8(a.weight + at);
  const uint4 raw_r = load8(a.remainder + at);
  const uint4 raw_m = load8(a.first + at);
  const uint4 raw_v = load8(a.second + at);
  if (a.scalars[kNonFiniteIndex] != 0) return;
  const float clip = a.scalars[kClipIndex];
  const AdamwNumbers& n = a.n;
  const float rest1 = __fsub_rn(1.0F, n.beta1);
  const float rest2 = __fsub_rn(1.0F, n.beta2);
  const std::uint32_t seed = mixed(n.rounding_seed + static_cast<std::uint32_t>(at >> 32));
  Half weight[8];
  Half remainder[8];
  Half first[8];
  Half second[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float g = __fmul_rn(widen(half_of(raw_g, j)), clip);
    const float m = __fadd_rn(__fmul_rn(n.beta1, widen(half_of(raw_m, j))), __fmul_rn(rest1, g));
    const float v =
        __fadd_rn(__fmul_rn(n.beta2, widen(half_of(raw_v, j))), __fmul_rn(__fmul_rn(rest2, g), g));
    const float w = join_halves(half_of(raw_w, j), half_of(raw_r, j));
    const float up = __fmul_rn(n.rate, __fmul_rn(m, n.correct1));
    const float down = __fadd_rn(__fsqrt_rn(__fmul_rn(v, n.correct2)), n.epsilon);
    const float moved = __fsub_rn(__fmul_rn(n.keep, w), __fdiv_rn(up, down));
    split_halves(moved, weight[j], remainder[j]);
    const std::uint32_t bits = mixed(seed ^ static_cast<std::uint32_t>(at + j));
    first[j] = narrow_stochastic(m, bits & 0xffffU);
    second[j] = narrow_stochastic(v, bits >> 16);
  }
  store8(a.weight + at, halves(weight));
  store8(a.remainder + at, halves(remainder));
  store8(a.first + at, halves(first));
  store8(a.second + at, halves(second));
}

}  // namespace

void gradient_norm(Device& device, std::span<const Matrix> gradients, double clip, Matrix scalars) {
  device.executed(step::Kind::kGradientNorm, {gradients.begin(), gradients.end()}, {scalars});
  double* sums = device.workspace.sums;
  for (const Matrix& gradient : gradients) {
    square_kernel<<<kSquareBlocks, kOptimizerThreads, 0, device.stream>>>(gradient.as<Half>(),
                                                                          gradient.cols / 8, sums);
    sums += kSquareBlocks;
  }
  norm_of_squares_kernel<<<1, kOptimizerSumThreads, 0, device.stream>>>(
      device.workspace.sums, static_cast<int>(gradients.size()) * kSquareBlocks, clip,
      scalars.as<float>());
  device.launched("gradient norm");
}

void adamw(Device& device, const AdamwNumbers& numbers, Matrix scalars, Matrix gradient,
           Matrix weight, Matrix remainder, Matrix first, Matrix second) {
  device.executed(step::Kind::kAdamw, {gradient, scalars}, {weight, remainder, first, second});
  const AdamwArguments a{
      scalars.as<float>(), gradient.as<Half>(), weight.as<Half>(), remainder.as<Half>(),
      first.as<Half>(),    second.as<Half>(),   weight.cols / 8,   numbers};
  adamw_kernel<<<blocks_for(a.vectors, kOptimizerThreads), kOptimizerThreads, 0, device.stream>>>(
      a);
  device.launched("AdamW");
}

}  // namespace assay::train::cuda
