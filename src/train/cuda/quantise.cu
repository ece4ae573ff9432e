// fp8: the scale of a matrix, and the matrix divided by it, as stored, transposed, or both in one
// pass. With experts, only rows in use count; the transposes have gaps between experts, filled with
// zeros (step/builder_quantised.cc).
#include <cuda_fp8.h>

#include "step/rules.h"
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kScaleThreads = 512;
constexpr int kFinalThreads = 1024;
constexpr int kScaleLoads = 4;  // in flight per thread

__device__ std::uint32_t larger_of(std::uint32_t most, const uint4& raw) {
  // Without the sign, bf16 numbers are ordered like integers; infinities and NaNs are largest.
  constexpr std::uint32_t kNoSigns = 0x7fff7fffU;
  most = __vmaxu2(most, raw.x & kNoSigns);
  most = __vmaxu2(most, raw.y & kNoSigns);
  most = __vmaxu2(most, raw.z & kNoSigns);
  return __vmaxu2(most, raw.w & kNoSigns);
}

__global__ void __launch_bounds__(kScaleThreads)
    largest_kernel(const uint4* x, std::int64_t vectors, const std::int32_t* rows,
                   std::int64_t vectors_of_row, std::uint32_t* largest) {
  __shared__ std::uint32_t shared[kScaleThreads / kWarp];
  if (rows != nullptr) vectors = min(vectors, *rows * vectors_of_row);
  std::uint32_t most = 0;
  const std::int64_t all = static_cast<std::int64_t>(gridDim.x) * kScaleThreads;
  std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kScaleThreads + threadIdx.x;
  for (; at + (kScaleLoads - 1) * all < vectors; at += kScaleLoads * all) {
    uint4 raw[kScaleLoads];
#pragma unroll
    for (int i = 0; i < kScaleLoads; ++i) raw[i] = x[at + i * all];
#pragma unroll
    for (int i = 0; i < kScaleLoads; ++i) most = larger_of(most, raw[i]);
  }
  for (; at < vectors; at += all) most = larger_of(most, x[at]);
  most = __reduce_max_sync(kEveryLane, max(most >> 16, most & 0xffffU));
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = most;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  constexpr int kWarps = kScaleThreads / kWarp;
  most = __reduce_max_sync(kEveryLane, threadIdx.x < kWarps ? shared[threadIdx.x] : 0U);
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

// The power of two at or above the number with these bits. One for zero; non-finite values are
// kept, so that everything scaled by them becomes NaN.
__device__ float power_above(std::uint32_t bits) {
  constexpr std::uint32_t kMantissa = 0x7fffffU;
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  constexpr std::uint32_t kExponent = 0x00800000U;
  constexpr std::uint32_t kLeast = 27 * kExponent;  // 2^-100, and
  constexpr std::uint32_t kMost = 252 * kExponent;  // 2^125: the range in which division is exact
  if (bits == 0) return 1;
  if (bits >= kInfinity) return __uint_as_float(bits);
  if ((bits & kMantissa) != 0) bits = (bits & ~kMantissa) + kExponent;
  return __uint_as_float(min(max(bits, kLeast), kMost));
}

__global__ void __launch_bounds__(kFinalThreads)
    scale_kernel(const std::uint32_t* largest, int count, float* scale) {
  __shared__ std::uint32_t shared[kWarp];
  std::uint32_t most = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    most = max(most, largest[i]);
  }
  most = __reduce_max_sync(kEveryLane, most);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = most;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  const bool there = threadIdx.x < blockDim.x / kWarp;
  most = __reduce_max_sync(kEveryLane, there ? shared[threadIdx.x] : 0U);
  if (threadIdx.x == 0) *scale = power_above(most << 16);
}

// A block transposes a tile of 128 x 128: each thread transposes 8 x 8 in registers, and these
// squares are exchanged through shared memory.
constexpr int kTile = 128;
constexpr int kSide = 8;
constexpr int kPerSide = kTile / kSide;
constexpr int kTileThreads = kPerSide * kPerSide;

struct QuantiseArguments {
  const Half* x;
  const float* scale;
  std::uint8_t* q;
  std::uint8_t* q_t;
  std::int64_t x_stride;
  std::int64_t q_stride;
  std::int64_t q_t_stride;
  std::int64_t q_t_cols;
  std::int64_t rows;
  std::int64_t cols;
  // With experts: the first row of each expert or piece, then the end.
  const std::int32_t* first_rows;
  int experts;
  int pieces;
};

// The source rows of eight columns of the transpose.
struct SourceRows {
  std::int64_t first;
  std::int64_t end;  // zeros from here on
};

__device__ std::int32_t first_row_of(const QuantiseArguments& a, int expert) {
  return a.first_rows[static_cast<std::int64_t>(expert) * a.pieces];
}

__device__ int padded_rows_of(const QuantiseArguments& a, int expert) {
  constexpr int kTo = static_cast<int>(step::kFp8Alignment);
  const int rows = first_row_of(a, expert + 1) - first_row_of(a, expert);
  return (rows + kTo - 1) / kTo * kTo;
}

// The expert to which column `at` belongs, or the last one before it with any columns; and its
// first column. A warp examines 32 experts at a time.
__device__ int2 expert_before(const QuantiseArguments& a, int at) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int begin = 0;
  for (int first = 0;; first += kWarp) {
    const int expert = first + lane;
    int end = expert < a.experts ? padded_rows_of(a, expert) : 0;
    const int own = end;
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int before = __shfl_up_sync(kEveryLane, end, offset);
      if (lane >= offset) end += before;
    }
    end += begin;
    const unsigned beyond = __ballot_sync(kEveryLane, end > at || expert >= a.experts - 1);
    if (beyond != 0) {
      const int found = __ffs(static_cast<int>(beyond)) - 1;
      return {first + found, __shfl_sync(kEveryLane, end - own, found)};
    }
    begin = __shfl_sync(kEveryLane, end, kWarp - 1);
  }
}

// For the eight columns from `at` on, which belong to one expert: every expert's columns start at a
// multiple of eight.
__device__ SourceRows source_of(const QuantiseArguments& a, int2 expert, int at) {
  while (expert.x < a.experts) {
    const int padded = padded_rows_of(a, expert.x);
    if (at < expert.y + padded) {
      const std::int32_t first = first_row_of(a, expert.x);
      return {first + at - expert.y, first_row_of(a, expert.x + 1)};
    }
    expert = {expert.x + 1, expert.y + padded};
  }
  return {0, -1};
}

__device__ uint2 to_fp8(const uint4& raw, float by) {
  float value[kSide];
  widen(raw, value);
  std::uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = __nv_cvt_float2_to_fp8x2({value[2 * i] * by, value[2 * i + 1] * by}, __NV_SATFINITE,
                                        __NV_E4M3);
  }
  return {pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16};
}

// Transposes four rows of four bytes.
__device__ void transpose4(const std::uint32_t (&rows)[4], std::uint32_t* columns) {
  const std::uint32_t low01 = __byte_perm(rows[0], rows[1], 0x5140);
  const std::uint32_t high01 = __byte_perm(rows[0], rows[1], 0x7362);
  const std::uint32_t low23 = __byte_perm(rows[2], rows[3], 0x5140);
  const std::uint32_t high23 = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(low01, low23, 0x5410);
  columns[1] = __byte_perm(low01, low23, 0x7632);
  columns[2] = __byte_perm(high01, high23, 0x5410);
  columns[3] = __byte_perm(high01, high23, 0x7632);
}

__device__ void transpose8(const uint2 (&rows)[kSide], std::uint32_t (&above)[kSide],
                           std::uint32_t (&below)[kSide]) {
  transpose4({rows[0].x, rows[1].x, rows[2].x, rows[3].x}, above);
  transpose4({rows[0].y, rows[1].y, rows[2].y, rows[3].y}, above + 4);
  transpose4({rows[4].x, rows[5].x, rows[6].x, rows[7].x}, below);
  transpose4({rows[4].y, rows[5].y, rows[6].y, rows[7].y}, below + 4);
}

template <bool kPlain, bool kTurned, bool kByExpert>
__global__ void __launch_bounds__(kTileThreads) quantise_kernel(QuantiseArguments a) {
  __shared__ uint2 tile[kTurned ? kTile : 1][kPerSide];
  const int across = static_cast<int>(threadIdx.x) % kPerSide;
  const int down = static_cast<int>(threadIdx.x) / kPerSide;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t first_col = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const std::int64_t col = first_col + across * kSide;
  SourceRows source{first_row + down * kSide, a.rows};
  if constexpr (kByExpert) {
    __shared__ int2 expert;
    if (threadIdx.x < kWarp) {
      const int2 found = expert_before(a, static_cast<int>(first_row));
      if (threadIdx.x == 0) expert = found;
    }
    __syncthreads();
    source = source_of(a, expert, static_cast<int>(source.first));
  }
  const std::int64_t row = source.first;
  const auto inside = [&](int i) { return row + i < source.end && col < a.cols; };
  uint4 raw[kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    raw[i] = inside(i) ? load8(a.x + (row + i) * a.x_stride + col) : uint4{0, 0, 0, 0};
  }
  const float by = kFp8Range / *a.scale;
  uint2 small[kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    small[i] = to_fp8(raw[i], by);
    if (kPlain && inside(i)) {
      *reinterpret_cast<uint2*>(a.q + (row + i) * a.q_stride + col) = small[i];
    }
  }
  if constexpr (kTurned) {
    std::uint32_t above[kSide];
    std::uint32_t below[kSide];
    transpose8(small, above, below);
    // Swizzled within a row of the tile, so that neither writes nor reads have bank conflicts.
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      tile[across * kSide + i][down ^ across] = make_uint2(above[i], below[i]);
    }
    __syncthreads();
    const std::int64_t turned_row = first_col + down * kSide;
    const std::int64_t turned_col = first_row + across * kSide;
    if (turned_row >= a.cols || turned_col >= a.q_t_cols) return;
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      *reinterpret_cast<uint2*>(a.q_t + (turned_row + i) * a.q_t_stride + turned_col) =
          tile[down * kSide + i][across ^ down];
    }
  }
}

}  // namespace

void scale(Device& device, Matrix x, Matrix first_rows, Matrix scale) {
  device.executed(step::OpKind::kScale, {x, first_rows}, {scale});
  if (x.stride != x.cols) return device.failed("scale: the matrix must be contiguous");
  const std::int64_t vectors = x.rows * x.cols / 8;
  const unsigned needed = blocks_for(vectors, kScaleThreads);
  const unsigned blocks = needed < kSquareBlocks ? needed : kSquareBlocks;
  auto* largest = reinterpret_cast<std::uint32_t*>(device.workspace.sums);
  const std::int32_t* rows =
      first_rows.empty() ? nullptr : first_rows.as<const std::int32_t>() + first_rows.cols - 1;
  largest_kernel<<<blocks, kScaleThreads, 0, device.stream>>>(x.as<const uint4>(), vectors, rows,
                                                              x.cols / 8, largest);
  scale_kernel<<<1, kFinalThreads, 0, device.stream>>>(largest, static_cast<int>(blocks),
                                                       scale.as<float>());
  device.launched("scale");
}

void quantise(Device& device, Matrix x, Matrix scale, const RowsOfExperts& by, Matrix q,
              Matrix q_t) {
  device.executed(step::OpKind::kQuantise, {x, scale, by.first_rows}, {q, q_t});
  const bool by_expert = !by.first_rows.empty();
  const QuantiseArguments a{
      .x = x.as<Half>(),
      .scale = scale.as<float>(),
      .q = q.as<std::uint8_t>(),
      .q_t = q_t.as<std::uint8_t>(),
      .x_stride = x.stride,
      .q_stride = q.stride,
      .q_t_stride = q_t.stride,
      .q_t_cols = q_t.cols,
      .rows = x.rows,
      .cols = x.cols,
      .first_rows = by.first_rows.as<const std::int32_t>(),
      .experts = by_expert ? static_cast<int>((by.first_rows.cols - 1) / by.pieces) : 0,
      .pieces = static_cast<int>(by.pieces)};
  const dim3 blocks(blocks_for(a.cols, kTile), blocks_for(by_expert ? q_t.cols : a.rows, kTile));
  const auto kernel = by_expert          ? (a.q == nullptr ? quantise_kernel<false, true, true>
                                                           : quantise_kernel<true, true, true>)
                      : a.q_t == nullptr ? quantise_kernel<true, false, false>
                      : a.q == nullptr   ? quantise_kernel<false, true, false>
                                         : quantise_kernel<true, true, false>;
  kernel<<<blocks, kTileThreads, 0, device.stream>>>(a);
  device.launched("to fp8");
}

}  // namespace assay::train::cuda
