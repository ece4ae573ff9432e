// Sums over micro-batches, the norm of the gradients, and AdamW. A step with non-finite gradients
// changes nothing; that is decided on the device, so the host does not wait.
//
// AdamW's arithmetic is written operation by operation, without fusing, so that the host can repeat
// it bit for bit.
#include "step/program.h"
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

static_assert(static_cast<int>(step::Scalar::kLossSum) == kLossSumIndex &&
              static_cast<int>(step::Scalar::kZLossSum) == kZLossSumIndex &&
              static_cast<int>(step::Scalar::kCount) == kCountIndex &&
              static_cast<int>(step::Scalar::kNorm) == kNormIndex &&
              static_cast<int>(step::Scalar::kClip) == kClipIndex &&
              static_cast<int>(step::Scalar::kNonFinite) == kNonFiniteIndex);

constexpr int kOptimizerThreads = 256;
constexpr int kOptimizerSumThreads = 1024;

// Rounds to bf16 after each addend, so that it does not matter whether addends come in one call or
// in several.
__global__ void __launch_bounds__(kOptimizerThreads)
    fold_kernel(const Half* addends, std::int64_t stride, int rows, Half* sum, std::int64_t vectors,
                bool adds) {
  const std::int64_t vector =
      static_cast<std::int64_t>(blockIdx.x) * kOptimizerThreads + threadIdx.x;
  if (vector >= vectors) return;
  const std::int64_t at = vector * 8;
  uint4 all = load8(adds ? sum + at : addends + at);
  for (int row = adds ? 0 : 1; row < rows; ++row) {
    float left[8];
    float right[8];
    widen(all, left);
    widen(load8(addends + row * stride + at), right);
#pragma unroll
    for (int j = 0; j < 8; ++j) left[j] = __fadd_rn(left[j], right[j]);
    all = narrow(left);
  }
  store8(sum + at, all);
}

// The same for single elements: fp32, or the remainder after the vectors.
template <class T>
__global__ void __launch_bounds__(kOptimizerThreads)
    fold_element_kernel(const T* addends, std::int64_t stride, int rows, T* sum,
                        std::int64_t elements, bool adds) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kOptimizerThreads + threadIdx.x;
  if (at >= elements) return;
  T all = adds ? sum[at] : addends[at];
  for (int row = adds ? 0 : 1; row < rows; ++row) {
    const T value = addends[row * stride + at];
    if constexpr (sizeof(T) == sizeof(float)) {
      all = __fadd_rn(all, value);
    } else {
      all = narrow(__fadd_rn(widen(all), widen(value)));
    }
  }
  sum[at] = all;
}

// One block of threads for each block of elements.
__global__ void __launch_bounds__(kOptimizerThreads)
    square_kernel(const Half* gradient, std::int64_t elements, int block, float* sums) {
  __shared__ double shared[1][kWarp];
  double sum[1] = {0};
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block;
  const std::int64_t last = first + block < elements ? first + block : elements;
#pragma unroll 4
  for (std::int64_t at = first + 8 * threadIdx.x; at < last; at += 8 * kOptimizerThreads) {
    float g[8];
    widen(load8(gradient + at), g);
    // fp32 is enough for eight squares: if they differ much in size the small ones do not matter,
    // and an overflow counts as infinite.
    float part = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) part += g[j] * g[j];
    sum[0] += static_cast<double>(part);
  }
  block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<float>(sum[0]);
}

// Copies rows one after the other, so that all sums are in parameter order.
__global__ void __launch_bounds__(kOptimizerThreads)
    line_up_kernel(const float* from, std::int64_t stride, int cols, int count, float* to) {
  const int i = static_cast<int>(blockIdx.x) * kOptimizerThreads + static_cast<int>(threadIdx.x);
  if (i < count) to[i] = from[i / cols * stride + i % cols];
}

__global__ void __launch_bounds__(kOptimizerSumThreads)
    norm_of_squares_kernel(const float* sums, int count, double clip, float* scalars) {
  __shared__ double shared[1][kWarp];
  double sum[1] = {0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kOptimizerSumThreads)
    sum[0] += static_cast<double>(sums[i]);
  block_sum(sum, shared);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(sum[0]);
  scalars[kNormIndex] = static_cast<float>(norm);
  scalars[kClipIndex] = clip > 0 && norm > clip ? static_cast<float>(clip / norm) : 1.0F;
  scalars[kNonFiniteIndex] = isfinite(norm) ? 0.0F : 1.0F;
}

// Adds micro-batches in their order, taking one from each rank in turn.
__global__ void step_sums_kernel(const float* by_rank, std::int64_t stride, int ranks, int cols,
                                 float* sums, int width) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= width) return;
  float sum = 0;
  for (int first = 0; first < cols; first += width) {
    for (int rank = 0; rank < ranks; ++rank) sum += by_rank[rank * stride + first + i];
  }
  sums[i] = sum;
}

struct AdamwArguments {
  const float* scalars;
  const Half* gradient;
  Half* weight;
  Half* remainder;
  Half* first;
  Half* second;
  std::int64_t vectors;
  std::int64_t element;  // index of the first element among all of the model's
  AdamwNumbers n;
  std::uint32_t rounding_seed;
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
  const std::int64_t element = a.element + at;
  const std::uint32_t seed = mixed(a.rounding_seed + static_cast<std::uint32_t>(element >> 32));
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
    const std::uint32_t bits = mixed(seed ^ static_cast<std::uint32_t>(element + j));
    first[j] = narrow_stochastic(m, bits & 0xffffU);
    second[j] = narrow_stochastic(v, bits >> 16);
  }
  store8(a.weight + at, halves(weight));
  store8(a.remainder + at, halves(remainder));
  store8(a.first + at, halves(first));
  store8(a.second + at, halves(second));
}

}  // namespace

void fold(Device& device, Matrix addends, Matrix sum, bool adds) {
  device.executed(step::OpKind::kFold, {addends}, {sum});
  const std::int64_t vectors = sum.cols / 8;
  const int rows = static_cast<int>(addends.rows);
  if (vectors > 0) {
    fold_kernel<<<blocks_for(vectors, kOptimizerThreads), kOptimizerThreads, 0, device.stream>>>(
        addends.as<Half>(), addends.stride, rows, sum.as<Half>(), vectors, adds);
  }
  if (const std::int64_t rest = sum.cols % 8; rest > 0) {  // in the bias of a router
    fold_element_kernel<<<1, kOptimizerThreads, 0, device.stream>>>(
        addends.as<Half>() + vectors * 8, addends.stride, rows, sum.as<Half>() + vectors * 8, rest,
        adds);
  }
  device.launched("sum of gradients");
}

void fold_fp32(Device& device, Matrix addends, Matrix sum, bool adds) {
  device.executed(step::OpKind::kFold, {addends}, {sum});
  fold_element_kernel<<<blocks_for(sum.cols, kOptimizerThreads), kOptimizerThreads, 0,
                        device.stream>>>(addends.as<float>(), addends.stride,
                                         static_cast<int>(addends.rows), sum.as<float>(), sum.cols,
                                         adds);
  device.launched("sum of loads");
}

void norm_sums(Device& device, std::int64_t block, std::span<const Matrix> gradients,
               std::span<const Matrix> sums) {
  device.executed(step::OpKind::kNormSums, {gradients.begin(), gradients.end()},
                  {sums.begin(), sums.end()});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    square_kernel<<<static_cast<unsigned>(sums[i].cols), kOptimizerThreads, 0, device.stream>>>(
        gradients[i].as<Half>(), gradients[i].cols, static_cast<int>(block), sums[i].as<float>());
  }
  device.launched("squares of gradients");
}

void gradient_norm(Device& device, std::span<const Matrix> sums, double clip, Matrix scalars) {
  device.executed(step::OpKind::kGradientNorm, {sums.begin(), sums.end()}, {scalars});
  float* line = device.workspace.norm_sums;
  int count = 0;
  for (const Matrix& part : sums) {
    const int here = static_cast<int>(part.rows * part.cols);
    line_up_kernel<<<blocks_for(here, kOptimizerThreads), kOptimizerThreads, 0, device.stream>>>(
        part.as<float>(), part.stride, static_cast<int>(part.cols), here, line + count);
    count += here;
  }
  norm_of_squares_kernel<<<1, kOptimizerSumThreads, 0, device.stream>>>(line, count, clip,
                                                                        scalars.as<float>());
  device.launched("gradient norm");
}

void step_sums(Device& device, Matrix by_rank, Matrix sums) {
  device.executed(step::OpKind::kStepSums, {by_rank}, {sums});
  step_sums_kernel<<<1, kWarp, 0, device.stream>>>(
      by_rank.as<float>(), by_rank.stride, static_cast<int>(by_rank.rows),
      static_cast<int>(by_rank.cols), sums.as<float>(), static_cast<int>(sums.cols));
  device.launched("sums of micro-batches");
}

void adamw(Device& device, const AdamwNumbers& numbers, std::uint32_t rounding_seed,
           std::int64_t element, Matrix scalars, Matrix gradient, Matrix weight, Matrix remainder,
           Matrix first, Matrix second) {
  device.executed(step::OpKind::kAdamw, {gradient, scalars}, {weight, remainder, first, second});
  const AdamwArguments a{.scalars = scalars.as<float>(),
                         .gradient = gradient.as<Half>(),
                         .weight = weight.as<Half>(),
                         .remainder = remainder.as<Half>(),
                         .first = first.as<Half>(),
                         .second = second.as<Half>(),
                         .vectors = weight.cols / 8,
                         .element = element,
                         .n = numbers,
                         .rounding_seed = rounding_seed};
  adamw_kernel<<<blocks_for(a.vectors, kOptimizerThreads), kOptimizerThreads, 0, device.stream>>>(
      a);
  device.launched("AdamW");
}

}  // namespace assay::train::cuda
