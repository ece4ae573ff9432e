// Sums over rows in two stages: within each block of rows, then over the blocks in order.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kColumns = 32;
constexpr int kRowLanes = 32;

__global__ void __launch_bounds__(kColumns* kRowLanes)
    sum_partial_kernel(const float* partial, int count, int width, Half* out, bool adds) {
  __shared__ float sums[kRowLanes][kColumns + 1];
  const int column = static_cast<int>(blockIdx.x) * kColumns + static_cast<int>(threadIdx.x);
  float sum = 0;
  if (column < width) {
    for (int i = static_cast<int>(threadIdx.y); i < count; i += kRowLanes) {
      sum += partial[static_cast<std::int64_t>(i) * width + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  float all = adds ? widen(out[column]) : 0.0F;
  for (int i = 0; i < kRowLanes; ++i) all += sums[i][threadIdx.x];
  out[column] = narrow(all);
}

constexpr int kBiasThreads = 64;
constexpr int kBiasRows = 4;

// Each thread sums eight columns of every kBiasRows-th row of the block's share.
__global__ void __launch_bounds__(kBiasThreads* kBiasRows)
    bias_kernel(const Half* dy, std::int64_t stride, std::int64_t rows, int vectors,
                float* partial) {
  __shared__ float sums[kBiasRows][kBiasThreads][8];
  const int at = static_cast<int>(blockIdx.x) * kBiasThreads + static_cast<int>(threadIdx.x);
  const std::int64_t share = (rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t first = share * blockIdx.y;
  const std::int64_t last = first + share < rows ? first + share : rows;
  float sum[8] = {};
  if (at < vectors) {
#pragma unroll 4
    for (std::int64_t row = first + threadIdx.y; row < last; row += kBiasRows) {
      float value[8];
      widen(load8(dy + row * stride + at * 8), value);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] += value[j];
    }
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) sums[threadIdx.y][threadIdx.x][j] = sum[j];
  __syncthreads();
  if (threadIdx.y != 0 || at >= vectors) return;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float all = 0;
    for (int i = 0; i < kBiasRows; ++i) all += sums[i][threadIdx.x][j];
    partial[(static_cast<std::int64_t>(blockIdx.y) * vectors + at) * 8 + j] = all;
  }
}

constexpr int kSumThreads = 256;

__global__ void __launch_bounds__(kSumThreads)
    sum_kernel(const Half* addends, int ranks, const Half* residual, const Half* bias, Half* sum,
               unsigned row_vectors, std::int64_t vectors) {
  const std::int64_t vector = static_cast<std::int64_t>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (vector >= vectors) return;
  float all[8] = {};
  const auto add = [&](const Half* from) {
    float value[8];
    widen(load8(from), value);
#pragma unroll
    for (int j = 0; j < 8; ++j) all[j] += value[j];
  };
  for (int rank = 0; rank < ranks; ++rank) add(addends + (rank * vectors + vector) * 8);
  if (residual != nullptr) add(residual + vector * 8);
  if (bias != nullptr) add(bias + vector % row_vectors * 8);
  store8(sum + vector * 8, narrow(all));
}

}  // namespace

void sum(Device& device, Matrix addends, Matrix residual, Matrix bias, Matrix sum) {
  device.executed(step::OpKind::kSum, {addends, residual, bias}, {sum});
  const std::int64_t vectors = sum.rows * sum.cols / 8;
  sum_kernel<<<blocks_for(vectors, kSumThreads), kSumThreads, 0, device.stream>>>(
      addends.as<Half>(), static_cast<int>(addends.rows), residual.as<Half>(), bias.as<Half>(),
      sum.as<Half>(), static_cast<unsigned>(sum.cols / 8), vectors);
  device.launched("sum of ranks");
}

void sum_partial(Device& device, const float* partial, int count, Matrix out, bool adds) {
  const dim3 threads(kColumns, kRowLanes);
  sum_partial_kernel<<<blocks_for(out.cols, kColumns), threads, 0, device.stream>>>(
      partial, count, static_cast<int>(out.cols), out.as<Half>(), adds);
  device.launched("sum over blocks");
}

void bias_grad(Device& device, Matrix dy, Matrix dbias, bool adds) {
  device.executed(step::OpKind::kBiasGrad, {dy}, {dbias});
  const int vectors = static_cast<int>(dy.cols / 8);
  const dim3 blocks(blocks_for(vectors, kBiasThreads), kBiasBlocks);
  const dim3 threads(kBiasThreads, kBiasRows);
  bias_kernel<<<blocks, threads, 0, device.stream>>>(dy.as<Half>(), dy.stride, dy.rows, vectors,
                                                     device.workspace.partial);
  device.launched("bias gradient");
  sum_partial(device, device.workspace.partial, kBiasBlocks, dbias, adds);
}

}  // namespace assay::train::cuda
