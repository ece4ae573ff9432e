// The activation functions of an MLP. The forward pass and the gradient, which may recompute the
// activation, share every operation, so that both get the same bits.
#include <algorithm>

#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kActivationThreads = 256;

// GELU in its tanh form, as GPT-2 was trained with.
constexpr float kGeluScale = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kGeluCube = 0.044715F;

__device__ float sigmoid(float x) {
  return __fdividef(1.0F, 1.0F + __expf(-x));
}

// Explicit multiplications: fused differently in the two passes they would round differently.
template <spec::Mlp kKind>
__device__ float value_and_slope(float x, float& slope) {
  if constexpr (kKind == spec::Mlp::kRelu2) {
    const float positive = x > 0 ? x : 0;
    slope = 2 * positive;
    return __fmul_rn(positive, positive);
  } else if constexpr (kKind == spec::Mlp::kGelu) {
    const float square = __fmul_rn(x, x);
    const float inner = __fmul_rn(__fmul_rn(kGeluScale, x), __fmaf_rn(kGeluCube, square, 1.0F));
    const float t = __fadd_rn(1.0F, -__fdividef(2.0F, __fadd_rn(1.0F, __expf(2.0F * inner))));
    const float inner_slope = kGeluScale * (1 + 3 * kGeluCube * square);
    const float half = __fmul_rn(0.5F, __fadd_rn(1.0F, t));
    slope = half + 0.5F * x * (1 - t * t) * inner_slope;
    return __fmul_rn(x, half);
  } else {
    const float s = sigmoid(x);
    const float silu = __fmul_rn(x, s);
    slope = s + silu * (1 - s);
    return silu;
  }
}

struct ActivationArguments {
  Half* inner;  // gate|up or up; overwritten by its gradient in the backward pass
  const Half* da;
  Half* a;
  std::int64_t inner_stride;
  std::int64_t da_stride;
  std::int64_t a_stride;
  unsigned vectors;  // per row of `a`
  std::uint64_t all;
  const float* weights;  // by slot, or null
  float* dweights;
  const std::int32_t* slots;  // the slot of each row
};

template <spec::Mlp kKind, bool kWeighted>
__global__ void __launch_bounds__(kActivationThreads) activate_kernel(ActivationArguments p) {
  constexpr bool kGated = kKind == spec::Mlp::kSwiglu;
  const std::uint64_t item =
      static_cast<std::uint64_t>(blockIdx.x) * kActivationThreads + threadIdx.x;
  if (item >= p.all) return;
  const auto row = static_cast<std::int64_t>(item / p.vectors);
  const std::int64_t at = static_cast<std::int64_t>(item % p.vectors) * 8;
  float weight = 1;
  if constexpr (kWeighted) {
    const std::int32_t slot = p.slots[row];
    if (slot < 0) return store8(p.a + row * p.a_stride + at, uint4{0, 0, 0, 0});
    weight = p.weights[slot];
  }
  const Half* from = p.inner + row * p.inner_stride + at;
  const uint4 raw_gate = load8(from);
  const uint4 raw_up = kGated ? load8(from + std::size_t{p.vectors} * 8) : uint4{};
  float gate[8];
  float up[8];
  float out[8];
  widen(raw_gate, gate);
  widen(raw_up, up);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float slope = 0;
    out[j] = value_and_slope<kKind>(gate[j], slope);
    if constexpr (kGated) out[j] = __fmul_rn(out[j], up[j]);
    if constexpr (kWeighted) out[j] = __fmul_rn(out[j], weight);
  }
  store8(p.a + row * p.a_stride + at, narrow(out));
}

template <spec::Mlp kKind>
__global__ void __launch_bounds__(kActivationThreads) activate_grad_kernel(ActivationArguments p) {
  constexpr bool kGated = kKind == spec::Mlp::kSwiglu;
  const std::uint64_t item =
      static_cast<std::uint64_t>(blockIdx.x) * kActivationThreads + threadIdx.x;
  if (item >= p.all) return;
  const auto row = static_cast<std::int64_t>(item / p.vectors);
  const std::int64_t at = static_cast<std::int64_t>(item % p.vectors) * 8;
  Half* inner = p.inner + row * p.inner_stride + at;
  Half* upper = inner + std::size_t{p.vectors} * 8;
  const uint4 raw_gate = load8(inner);
  const uint4 raw_up = kGated ? load8(upper) : uint4{};
  const uint4 raw_da = load8(p.da + row * p.da_stride + at);
  float gate[8];
  float up[8];
  float d[8];
  float value[8];
  widen(raw_gate, gate);
  widen(raw_up, up);
  widen(raw_da, d);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float slope = 0;
    value[j] = value_and_slope<kKind>(gate[j], slope);
    if constexpr (kGated) {
      gate[j] = d[j] * up[j] * slope;
      const float dup = d[j] * value[j];
      value[j] = __fmul_rn(value[j], up[j]);
      up[j] = dup;
    } else {
      gate[j] = d[j] * slope;
    }
  }
  store8(inner, narrow(gate));
  if constexpr (kGated) store8(upper, narrow(up));
  if (p.a != nullptr) store8(p.a + row * p.a_stride + at, narrow(value));
}

// One block per row, which also computes the gradient of the row's weight: the dot product of the
// row's gradient and the activation.
template <spec::Mlp kKind>
__global__ void __launch_bounds__(kActivationThreads)
    activate_grad_of_rows_kernel(ActivationArguments p) {
  constexpr bool kGated = kKind == spec::Mlp::kSwiglu;
  __shared__ float shared[1][kWarp];
  const std::int64_t row = blockIdx.x;
  const std::int32_t slot = p.slots[row];
  if (slot < 0) return;
  const float weight = p.weights[slot];
  float of_weight[1] = {0};
  for (unsigned vector = threadIdx.x; vector < p.vectors; vector += blockDim.x) {
    const std::int64_t at = std::int64_t{vector} * 8;
    Half* inner = p.inner + row * p.inner_stride + at;
    Half* upper = inner + std::size_t{p.vectors} * 8;
    const uint4 raw_gate = load8(inner);
    const uint4 raw_up = kGated ? load8(upper) : uint4{};
    const uint4 raw_da = load8(p.da + row * p.da_stride + at);
    float gate[8];
    float up[8];
    float d[8];
    float value[8];
    widen(raw_gate, gate);
    widen(raw_up, up);
    widen(raw_da, d);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float slope = 0;
      value[j] = value_and_slope<kKind>(gate[j], slope);
      const float weighted = weight * d[j];
      if constexpr (kGated) {
        gate[j] = weighted * up[j] * slope;
        const float dup = weighted * value[j];
        value[j] = __fmul_rn(value[j], up[j]);
        up[j] = dup;
      } else {
        gate[j] = weighted * slope;
      }
      of_weight[0] += d[j] * value[j];
      value[j] = __fmul_rn(value[j], weight);
    }
    store8(inner, narrow(gate));
    if constexpr (kGated) store8(upper, narrow(up));
    if (p.a != nullptr) store8(p.a + row * p.a_stride + at, narrow(value));
  }
  block_sum(of_weight, shared);
  if (threadIdx.x == 0) p.dweights[slot] = of_weight[0];
}

// Calls visit with the kind as a compile-time constant.
template <class Visit>
void with_kind(spec::Mlp kind, Visit visit) {
  switch (kind) {
    case spec::Mlp::kSwiglu:
      return visit(std::integral_constant<spec::Mlp, spec::Mlp::kSwiglu>{});
    case spec::Mlp::kGelu:
      return visit(std::integral_constant<spec::Mlp, spec::Mlp::kGelu>{});
    case spec::Mlp::kRelu2:
      return visit(std::integral_constant<spec::Mlp, spec::Mlp::kRelu2>{});
  }
}

}  // namespace

void activate(Device& device, spec::Mlp kind, Matrix inner, RowWeights by, Matrix a) {
  device.executed(step::OpKind::kActivate, {inner, by.weights, by.slots}, {a});
  ActivationArguments p{.inner = inner.as<Half>(),
                        .a = a.as<Half>(),
                        .inner_stride = inner.stride,
                        .a_stride = a.stride,
                        .vectors = static_cast<unsigned>(a.cols / 8),
                        .weights = by.weights.as<float>(),
                        .slots = by.slots.as<std::int32_t>()};
  p.all = static_cast<std::uint64_t>(a.rows) * p.vectors;
  const unsigned blocks = blocks_for(static_cast<std::int64_t>(p.all), kActivationThreads);
  with_kind(kind, [&](auto constant) {
    constexpr spec::Mlp kKind = decltype(constant)::value;
    if (by.empty()) {
      activate_kernel<kKind, false><<<blocks, kActivationThreads, 0, device.stream>>>(p);
    } else {
      activate_kernel<kKind, true><<<blocks, kActivationThreads, 0, device.stream>>>(p);
    }
  });
  device.launched("activation");
}

void activate_grad(Device& device, spec::Mlp kind, Matrix inner, Matrix da, RowWeights by,
                   Matrix dinner, Matrix dweights, Matrix a) {
  device.executed(step::OpKind::kActivateGrad, {inner, da, by.weights, by.slots},
                  {dinner, dweights, a});
  if (dinner.data != inner.data) return device.failed("activation gradient: not in place");
  ActivationArguments p{.inner = inner.as<Half>(),
                        .da = da.as<Half>(),
                        .a = a.as<Half>(),
                        .inner_stride = inner.stride,
                        .da_stride = da.stride,
                        .a_stride = a.stride,
                        .vectors = static_cast<unsigned>(da.cols / 8),
                        .weights = by.weights.as<float>(),
                        .dweights = dweights.as<float>(),
                        .slots = by.slots.as<std::int32_t>()};
  p.all = static_cast<std::uint64_t>(da.rows) * p.vectors;
  const unsigned row_threads =
      std::min<unsigned>(kActivationThreads, blocks_for(p.vectors, kWarp) * kWarp);
  with_kind(kind, [&](auto constant) {
    constexpr spec::Mlp kKind = decltype(constant)::value;
    if (by.empty()) {
      activate_grad_kernel<kKind>
          <<<blocks_for(static_cast<std::int64_t>(p.all), kActivationThreads), kActivationThreads,
             0, device.stream>>>(p);
    } else {
      activate_grad_of_rows_kernel<kKind>
          <<<static_cast<unsigned>(da.rows), row_threads, 0, device.stream>>>(p);
    }
  });
  device.launched("activation gradient");
}

}  // namespace assay::train::cuda
