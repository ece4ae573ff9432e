// RMSNorm of the heads of queries and keys. A head spans a few lanes of a warp, so its sums stay
// within the warp.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kHeadNormThreads = 256;

struct HeadArguments {
  const Half* dy;  // null in the forward pass
  const Half* x;
  const Half* weight;
  Half* out;
  float* dweight;  // partial, a row per block
  std::int64_t dy_stride;
  std::int64_t x_stride;
  std::int64_t out_stride;
  unsigned heads;  // per row
  unsigned all;    // over all rows
  int vectors;     // per head
  int lanes;       // per head: a power of two
  float epsilon;
};

__device__ float lanes_sum(float value, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kEveryLane, value, offset);
  }
  return value;
}

__global__ void __launch_bounds__(kHeadNormThreads) head_norm_kernel(HeadArguments a) {
  __shared__ float sums[kHeadNormThreads][8];
  const int lane = static_cast<int>(threadIdx.x) % a.lanes;
  const unsigned per_block = kHeadNormThreads / static_cast<unsigned>(a.lanes);
  const bool inside = lane < a.vectors;
  const float width = static_cast<float>(a.vectors) * 8.0F;
  float weight[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  if (inside && a.weight != nullptr) widen(load8(a.weight + lane * 8), weight);
  float dweight[8] = {};
  // Every lane of a warp makes the same number of iterations: the sums need all lanes.
  for (unsigned first = blockIdx.x * per_block; first < a.all; first += gridDim.x * per_block) {
    const unsigned head = first + threadIdx.x / static_cast<unsigned>(a.lanes);
    const bool works = inside && head < a.all;
    const std::int64_t row = head / a.heads;
    const std::int64_t column =
        static_cast<std::int64_t>(head % a.heads) * a.vectors * 8 + lane * 8;
    float x[8];
    float dy[8] = {};
    widen(works ? load8(a.x + row * a.x_stride + column) : uint4{0, 0, 0, 0}, x);
    if (works && a.dy != nullptr) widen(load8(a.dy + row * a.dy_stride + column), dy);
    float square = 0;
    float along = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      square += x[j] * x[j];
      along += dy[j] * weight[j] * x[j];
    }
    const float scale = rsqrtf(lanes_sum(square, a.lanes) / width + a.epsilon);
    const float take_along = lanes_sum(along, a.lanes) * scale / width;
    float out[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float normal = x[j] * scale;
      dweight[j] += dy[j] * normal;
      out[j] =
          a.dy == nullptr ? normal * weight[j] : scale * (dy[j] * weight[j] - normal * take_along);
    }
    if (works) store8(a.out + row * a.out_stride + column, narrow(out));
  }
  if (a.dweight == nullptr) return;
#pragma unroll
  for (int j = 0; j < 8; ++j) sums[threadIdx.x][j] = dweight[j];
  __syncthreads();
  // One thread per column adds up the block's groups of lanes.
  const int column = static_cast<int>(threadIdx.x);
  if (column >= a.vectors * 8) return;
  float sum = 0;
  for (int group = 0; group < static_cast<int>(per_block); ++group) {
    sum += sums[group * a.lanes + column / 8][column % 8];
  }
  a.dweight[static_cast<std::int64_t>(blockIdx.x) * a.vectors * 8 + column] = sum;
}

void launch(Device& device, HeadArguments a, NormShape shape, Matrix x, int blocks) {
  a.heads = static_cast<unsigned>(x.cols / shape.width);
  a.all = static_cast<unsigned>(x.rows) * a.heads;
  a.vectors = static_cast<int>(shape.width / 8);
  a.epsilon = shape.epsilon;
  a.lanes = 1;
  while (a.lanes < a.vectors) a.lanes *= 2;
  const unsigned needed = blocks_for(a.all, kHeadNormThreads / a.lanes);
  auto grid = static_cast<unsigned>(blocks);
  if (a.dweight == nullptr && needed < grid) grid = needed;
  head_norm_kernel<<<grid, kHeadNormThreads, 0, device.stream>>>(a);
  device.launched("head norm");
}

}  // namespace

void head_norm(Device& device, NormShape shape, Matrix x, Matrix weight, Matrix y) {
  device.executed(step::OpKind::kHeadNorm, {x, weight}, {y});
  HeadArguments a{.x = x.as<Half>(),
                  .weight = weight.as<Half>(),
                  .out = y.as<Half>(),
                  .x_stride = x.stride,
                  .out_stride = y.stride};
  launch(device, a, shape, x, 1 << 20);
}

void head_norm_grad(Device& device, NormShape shape, Matrix dy, Matrix x, Matrix weight, Matrix dx,
                    Matrix dweight, bool adds_weight) {
  device.executed(step::OpKind::kHeadNormGrad, {dy, x, weight}, {dx, dweight});
  HeadArguments a{.dy = dy.as<Half>(),
                  .x = x.as<Half>(),
                  .weight = weight.as<Half>(),
                  .out = dx.as<Half>(),
                  .dy_stride = dy.stride,
                  .x_stride = x.stride,
                  .out_stride = dx.stride};
  a.dweight = dweight.empty() ? nullptr : device.workspace.partial;
  launch(device, a, shape, x, kNormBlocks);
  if (!dweight.empty()) sum_partial(device, a.dweight, kNormBlocks, dweight, adds_weight);
}

}  // namespace assay::train::cuda
