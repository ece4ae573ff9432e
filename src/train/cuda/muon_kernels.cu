// The element-wise parts of Muon, around its matrix products (muon.cc).
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kMuonThreads = 256;
constexpr int kMuonSumThreads = 1024;

struct MuonArguments {
  const float* scalars;
  const Half* gradient;
  Half* momentum;
  Half* update;
  Half* weight;
  Half* remainder;
  double* sums;
  std::int64_t elements;
  MuonNumbers n;
  std::uint32_t rounding_seed;
};

__global__ void __launch_bounds__(kMuonThreads) direction_kernel(MuonArguments a) {
  __shared__ double shared[1][kWarp];
  double square[1] = {0};
  const bool works = a.scalars[kNonFiniteIndex] == 0;
  const float clip = a.scalars[kClipIndex];
  const std::uint32_t seed = mixed(a.rounding_seed);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kMuonThreads * 8;
  for (std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kMuonThreads + threadIdx.x) * 8;
       at < a.elements; at += step) {
    float g[8];
    float m[8];
    Half kept[8];
    widen(load8(a.gradient + at), g);
    widen(load8(a.momentum + at), m);
    float part = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float clipped = works ? g[j] * clip : 0.0F;
      const float moved = a.n.beta * m[j] + (1 - a.n.beta) * clipped;
      kept[j] =
          narrow_stochastic(moved, mixed(seed ^ static_cast<std::uint32_t>(at + j)) & 0xffffU);
      g[j] = (1 - a.n.beta) * clipped + a.n.beta * moved;  // Nesterov momentum
      part += g[j] * g[j];
    }
    square[0] += static_cast<double>(part);
    store8(a.update + at, narrow(g));
    if (!works) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) a.momentum[at + j] = kept[j];
  }
  block_sum(square, shared);
  if (threadIdx.x == 0) a.sums[blockIdx.x] = square[0];
}

__global__ void __launch_bounds__(kMuonSumThreads) length_kernel(double* sums) {
  __shared__ double shared[1][kWarp];
  double sum[1] = {0};
  for (int i = static_cast<int>(threadIdx.x); i < kSquareBlocks; i += kMuonSumThreads) {
    sum[0] += sums[i];
  }
  block_sum(sum, shared);
  if (threadIdx.x == 0) sums[kSquareBlocks] = 1.0 / (sqrt(sum[0]) + 1e-7);
}

__global__ void __launch_bounds__(kMuonThreads)
    scale_kernel(Half* update, std::int64_t elements, const double* scale) {
  const auto times = static_cast<float>(*scale);
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kMuonThreads + threadIdx.x) * 8;
  if (at >= elements) return;
  float x[8];
  widen(load8(update + at), x);
#pragma unroll
  for (int j = 0; j < 8; ++j) x[j] *= times;
  store8(update + at, narrow(x));
}

__global__ void __launch_bounds__(kMuonThreads) move_kernel(MuonArguments a) {
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kMuonThreads + threadIdx.x) * 8;
  if (at >= a.elements || a.scalars[kNonFiniteIndex] != 0) return;
  float update[8];
  widen(load8(a.update + at), update);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float w = join_halves(a.weight[at + j], a.remainder[at + j]);
    split_halves(a.n.keep * w - a.n.rate * update[j], a.weight[at + j], a.remainder[at + j]);
  }
}

}  // namespace

void muon_direction(Device& device, const MuonNumbers& numbers, std::uint32_t rounding_seed,
                    Matrix scalars, Matrix gradient, Matrix momentum, Matrix update) {
  double* sums = device.workspace.sums;
  const std::int64_t elements = gradient.rows * gradient.cols;
  const MuonArguments a{.scalars = scalars.as<float>(),
                        .gradient = gradient.as<Half>(),
                        .momentum = momentum.as<Half>(),
                        .update = update.as<Half>(),
                        .sums = sums,
                        .elements = elements,
                        .n = numbers,
                        .rounding_seed = rounding_seed};
  direction_kernel<<<kSquareBlocks, kMuonThreads, 0, device.stream>>>(a);
  length_kernel<<<1, kMuonSumThreads, 0, device.stream>>>(sums);
  scale_kernel<<<blocks_for(elements, kMuonThreads * 8), kMuonThreads, 0, device.stream>>>(
      update.as<Half>(), elements, sums + kSquareBlocks);
  device.launched("Muon's direction");
}

void muon_move(Device& device, const MuonNumbers& numbers, Matrix scalars, Matrix update,
               Matrix weight, Matrix remainder) {
  const MuonArguments a{.scalars = scalars.as<float>(),
                        .update = update.as<Half>(),
                        .weight = weight.as<Half>(),
                        .remainder = remainder.as<Half>(),
                        .elements = weight.rows * weight.cols,
                        .n = numbers};
  move_kernel<<<blocks_for(a.elements, kMuonThreads * 8), kMuonThreads, 0, device.stream>>>(a);
  device.launched("Muon's move");
}

}  // namespace assay::train::cuda
