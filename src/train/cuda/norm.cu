// RMSNorm and LayerNorm of rows. A block holds one row at a time in registers, so each row is read
// once.
#include "train/cuda/kernels.h"
#include "train/cuda/rows.cuh"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

struct NormArguments {
  const Half* x;
  const Half* weight;
  const Half* bias;
  Half* h;
  std::int64_t x_stride;
  std::int64_t h_stride;
  int vectors;
  bool centred;
  float epsilon;
};

// kVectors: vectors of 8 per thread and row.
template <int kVectors>
__global__ void __launch_bounds__(kRowThreads) norm_kernel(NormArguments a) {
  __shared__ float shared[2][1][kWarp];
  const Half* x = a.x + static_cast<std::int64_t>(blockIdx.x) * a.x_stride;
  Half* h = a.h + static_cast<std::int64_t>(blockIdx.x) * a.h_stride;
  float value[kVectors][8];
  const float width = static_cast<float>(a.vectors) * 8.0F;
  float sum[1] = {0};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
    widen(at < a.vectors ? load8(x + at * 8) : uint4{0, 0, 0, 0}, value[i]);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[0] += value[i][j];
  }
  float mean = 0;
  if (a.centred) {
    block_sum(sum, shared[0]);
    mean = sum[0] / width;
  }
  float square[1] = {0};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
    if (at >= a.vectors) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      value[i][j] -= mean;
      square[0] += value[i][j] * value[i][j];
    }
  }
  block_sum(square, shared[1]);
  const float scale = rsqrtf(square[0] / width + a.epsilon);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
    if (at >= a.vectors) continue;
    float weight[8];
    float bias[8];
    if (a.weight != nullptr) widen(load8(a.weight + at * 8), weight);
    if (a.bias != nullptr) widen(load8(a.bias + at * 8), bias);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      value[i][j] *= scale;
      if (a.weight != nullptr) value[i][j] *= weight[j];
      if (a.bias != nullptr) value[i][j] += bias[j];
    }
    store8(h + at * 8, narrow(value[i]));
  }
}

}  // namespace

void norm(Device& device, NormShape shape, Matrix x, Matrix weight, Matrix bias, Matrix h) {
  device.executed(step::OpKind::kNorm, {x, weight, bias}, {h});
  NormArguments a{x.as<Half>(),
                  weight.as<Half>(),
                  bias.as<Half>(),
                  h.as<Half>(),
                  x.stride,
                  h.stride,
                  static_cast<int>(x.cols / 8),
                  shape.centred,
                  shape.epsilon};
  with_vectors(a.vectors, [&](auto count, int threads) {
    norm_kernel<decltype(count)::value>
        <<<static_cast<unsigned>(x.rows), threads, 0, device.stream>>>(a);
  });
  device.launched("norm");
}

}  // namespace assay::train::cuda
