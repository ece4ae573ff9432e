// Helpers for all kernels: vectors of eight bf16 numbers, and sums over a block in a fixed order.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace assay::train::cuda {

using Half = std::uint16_t;  // the bits of a bf16

__device__ inline float widen(Half bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}

__device__ inline Half narrow(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

__device__ inline std::uint32_t narrow_two(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(both.x)) |
         (static_cast<std::uint32_t>(__bfloat16_as_ushort(both.y)) << 16);
}

__device__ inline void widen(const uint4& raw, float (&out)[8]) {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = __uint_as_float(words[i] << 16);
    out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
  }
}

__device__ inline uint4 narrow(const float (&in)[8]) {
  return {narrow_two(in[0], in[1]), narrow_two(in[2], in[3]), narrow_two(in[4], in[5]),
          narrow_two(in[6], in[7])};
}

__device__ inline uint4 load8(const Half* from) {
  return *reinterpret_cast<const uint4*>(from);
}

__device__ inline void store8(Half* to, const uint4& raw) {
  *reinterpret_cast<uint4*>(to) = raw;
}

inline constexpr int kWarp = 32;
inline constexpr unsigned kEveryLane = 0xffffffffU;

template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kEveryLane, value, offset);
  }
  return value;
}

// Sums kCount values over a block of whole warps; every thread gets the results. Consecutive calls
// must alternate between two shared arrays.
template <int kCount, class T>
__device__ void block_sum(T (&values)[kCount], T (*shared)[kWarp]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = warp_sum(values[i]);
    if (threadIdx.x % kWarp == 0) shared[i][threadIdx.x / kWarp] = values[i];
  }
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / kWarp;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    T sum = 0;
    for (int w = 0; w < warps; ++w) sum += shared[i][w];
    values[i] = sum;
  }
}

// Mixes 32 bits (the finalizer of MurmurHash3).
__host__ __device__ inline std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  return x ^ (x >> 16);
}

// Stochastic rounding to bf16: rounds up with a probability equal to the truncated fraction.
// `random`: 16 bits.
__device__ inline Half narrow_stochastic(float value, std::uint32_t random) {
  return static_cast<Half>((__float_as_uint(value) + random) >> 16);
}

// See train/float_bits.h.
__device__ inline float join_halves(Half high, Half low) {
  const int away = static_cast<std::int16_t>(low);
  return __uint_as_float((static_cast<std::uint32_t>(high) << 16) +
                         static_cast<std::uint32_t>(away));
}
__device__ inline void split_halves(float value, Half& high, Half& low) {
  const std::uint32_t bits = __float_as_uint(value);
  high = static_cast<Half>((bits + 0x8000U) >> 16);
  low = static_cast<Half>(bits);
}

// Indices of the step's scalars (step::Scalar), for kernels.
inline constexpr int kLossSumIndex = 0;
inline constexpr int kZLossSumIndex = 1;
inline constexpr int kCountIndex = 2;
inline constexpr int kNormIndex = 6;
inline constexpr int kClipIndex = 7;
inline constexpr int kNonFiniteIndex = 8;

inline constexpr int kTerms = 3;  // step::kLossTerms

inline unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace assay::train::cuda
