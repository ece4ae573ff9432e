// The gradient of RMSNorm and LayerNorm. Row statistics are recomputed from the row, which is read
// anyway. A block processes many rows and keeps its part of the weights' gradients in registers.
#include "train/cuda/kernels.h"
#include "train/cuda/rows.cuh"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

struct NormGradArguments {
  const Half* dh;
  const Half* x;
  const Half* weight;
  const Half* added;  // may be dx, or null
  Half* dx;
  float* dweight;  // partial, a row per block; null if there is no weight
  float* dbias;    // likewise
  std::int64_t dh_stride;
  std::int64_t x_stride;
  std::int64_t added_stride;
  std::int64_t dx_stride;
  std::int64_t rows;
  int vectors;
  float epsilon;
};

template <int kVectors, bool kCentred>
__global__ void __launch_bounds__(kRowThreads, kVectors <= 4 ? 2 : 1)
    norm_grad_kernel(NormGradArguments a) {
  __shared__ float shared[2][3][kWarp];
  float dweight[kVectors][8] = {};
  float dbias[kCentred ? kVectors : 1][8] = {};
  const float width = static_cast<float>(a.vectors) * 8.0F;
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const Half* dh = a.dh + row * a.dh_stride;
    const Half* x = a.x + row * a.x_stride;
    const Half* added = a.added == nullptr ? nullptr : a.added + row * a.added_stride;
    Half* dx = a.dx + row * a.dx_stride;
    uint4 raw_x[kVectors];
    uint4 raw_dh[kVectors];
    uint4 raw_dx[kVectors];
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
      const bool inside = at < a.vectors;
      raw_x[i] = inside ? load8(x + at * 8) : uint4{0, 0, 0, 0};
      raw_dh[i] = inside ? load8(dh + at * 8) : uint4{0, 0, 0, 0};
      raw_dx[i] = inside && added != nullptr ? load8(added + at * 8) : uint4{0, 0, 0, 0};
    }
    float mean = 0;
    if constexpr (kCentred) {
      float sum[1] = {0};
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        float value[8];
        widen(raw_x[i], value);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[0] += value[j];
      }
      block_sum(sum, shared[1]);
      mean = sum[0] / width;
    }
    // Sum of squares of the row; sum of gradient times row; sum of the gradient.
    float sums[3] = {0, 0, 0};
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
      if (at >= a.vectors) continue;
      float value[8];
      float g[8];
      widen(raw_x[i], value);
      widen(raw_dh[i], g);
      if (a.weight != nullptr) {
        float weight[8];
        widen(load8(a.weight + at * 8), weight);
#pragma unroll
        for (int j = 0; j < 8; ++j) g[j] *= weight[j];
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float away = value[j] - mean;
        sums[0] += away * away;
        sums[1] += g[j] * away;
        sums[2] += g[j];
      }
    }
    // Without a mean there is one sum per row, so the two shared arrays alternate.
    block_sum(sums, shared[kCentred ? 0 : (row / gridDim.x) % 2]);
    const float scale = rsqrtf(sums[0] / width + a.epsilon);
    const float take_along = sums[1] * scale / width;
    const float take_mean = kCentred ? sums[2] / width : 0.0F;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
      if (at >= a.vectors) continue;
      float value[8];
      float g[8];
      float result[8];
      float weight[8];
      widen(raw_x[i], value);
      widen(raw_dh[i], g);
      widen(raw_dx[i], result);
      if (a.weight != nullptr) widen(load8(a.weight + at * 8), weight);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float normal = (value[j] - mean) * scale;
        dweight[i][j] += g[j] * normal;
        if constexpr (kCentred) dbias[i][j] += g[j];
        const float along = a.weight != nullptr ? g[j] * weight[j] : g[j];
        result[j] += scale * (along - take_mean - normal * take_along);
      }
      store8(dx + at * 8, narrow(result));
    }
  }
  if (a.dweight == nullptr) return;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * static_cast<int>(blockDim.x);
    if (at >= a.vectors) continue;
    const std::int64_t place = (static_cast<std::int64_t>(blockIdx.x) * a.vectors + at) * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      a.dweight[place + j] = dweight[i][j];
      if constexpr (kCentred) a.dbias[place + j] = dbias[i][j];
    }
  }
}

}  // namespace

void norm_grad(Device& device, NormShape shape, Matrix dh, Matrix x, Matrix weight, Matrix residual,
               Matrix dx, bool adds_dx, Matrix dweight, Matrix dbias, bool adds_weights) {
  device.executed(step::OpKind::kNormGrad, {dh, x, weight, residual}, {dx, dweight, dbias});
  const Matrix added = adds_dx ? dx : residual;
  const int blocks = static_cast<int>(x.rows < kNormBlocks ? x.rows : kNormBlocks);
  float* partial = dweight.empty() ? nullptr : device.workspace.partial;
  float* partial_bias = partial == nullptr ? nullptr : partial + kNormBlocks * x.cols;
  NormGradArguments a{dh.as<Half>(),
                      x.as<Half>(),
                      weight.as<Half>(),
                      added.as<Half>(),
                      dx.as<Half>(),
                      partial,
                      partial_bias,
                      dh.stride,
                      x.stride,
                      added.stride,
                      dx.stride,
                      x.rows,
                      static_cast<int>(x.cols / 8),
                      shape.epsilon};
  with_vectors(a.vectors, [&](auto count, int threads) {
    if (shape.centred) {
      norm_grad_kernel<decltype(count)::value, true><<<blocks, threads, 0, device.stream>>>(a);
    } else {
      norm_grad_kernel<decltype(count)::value, false><<<blocks, threads, 0, device.stream>>>(a);
    }
  });
  device.launched("norm gradient");
  if (!dweight.empty()) sum_partial(device, partial, blocks, dweight, adds_weights);
  if (!dbias.empty()) sum_partial(device, partial_bias, blocks, dbias, adds_weights);
}

}  // namespace assay::train::cuda
