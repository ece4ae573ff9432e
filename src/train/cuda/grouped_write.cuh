// The products of all experts on Hopper: how a warpgroup writes its sums (grouped_kernel.cuh). They
// are written from registers to device memory row by row, so that the next expert's rows are not
// touched.
#pragma once

#include "train/cuda/grouped_tiles.cuh"

namespace assay::train::cuda::grouped {

// Transposes among four lanes: each has two columns of each of four 8-column blocks, and gets all
// eight columns of one block.
__device__ inline void swap_columns(std::uint32_t (&words)[4]) {
  const bool odd = (threadIdx.x & 1U) != 0;
  const bool high = (threadIdx.x & 2U) != 0;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t got = __shfl_xor_sync(kEveryLane, odd ? words[i] : words[i + 1], 1);
    words[i] = odd ? got : words[i];
    words[i + 1] = odd ? words[i + 1] : got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t got = __shfl_xor_sync(kEveryLane, high ? words[i] : words[i + 2], 2);
    words[i] = high ? got : words[i];
    words[i + 2] = high ? words[i + 2] : got;
  }
}

// A warpgroup's part of a tile.
struct Part {
  Half* c;  // its first element
  std::int64_t stride;
  int rows;
  int cols;
};

// The first row for which a thread holds sums; it holds two of every eight columns, in this row and
// in the one eight rows below.
__device__ inline int first_row() {
  const auto thread = static_cast<int>(threadIdx.x);
  return thread % kWarpgroup / kWarp * 16 + thread % kWarp / 4;
}

// Adds the previous contents of c, which TMA has copied into adjacent boxes.
template <int kWidth>
__device__ __forceinline__ void add_boxes(float (&sums)[kWidth / 2], std::uint32_t boxes) {
  constexpr int kBlocks = kPiece / 8;  // 8-column blocks per box
#pragma unroll
  for (int block = 0; block < kWidth / 8; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // Swizzled: the order of blocks differs from row to row.
      const auto row = static_cast<std::uint32_t>(first_row() + half * 8);
      const std::uint32_t at = boxes + block / kBlocks * kBox + row * kBoxRow +
                               ((block % kBlocks) ^ (row % 8)) * 16 + threadIdx.x % 4 * 4;
      std::uint32_t two = 0;
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(two) : "r"(at) : "memory");
      sums[block * 4 + half * 2] += __uint_as_float(two << 16);
      sums[block * 4 + half * 2 + 1] += __uint_as_float(two & 0xffff0000U);
    }
  }
}

template <int kWidth>
__device__ __forceinline__ void write_sums(const float (&sums)[kWidth / 2], const Part& part) {
  constexpr int kCols = 32;  // written by four lanes
  const int row = first_row();
  const int col = static_cast<int>(threadIdx.x) % 4 * 8;
  Half* const own[2] = {part.c + row * part.stride + col, part.c + (row + 8) * part.stride + col};
#pragma unroll
  for (int i = 0; i < kWidth / kCols; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int sum = (i * 4 + j) * 4 + half * 2;
        words[j] = narrow_two(sums[sum], sums[sum + 1]);
      }
      swap_columns(words);
      if (row + half * 8 < part.rows && i * kCols + col < part.cols) {
        store8(own[half] + i * kCols, {words[0], words[1], words[2], words[3]});
      }
    }
  }
}

__device__ inline void write_zeros(const Part& part) {
  for (int row = static_cast<int>(threadIdx.x) % kWarpgroup / kWarp; row < part.rows;
       row += kWarpgroup / kWarp) {
    const int col = static_cast<int>(threadIdx.x) % kWarp * 8;
    if (col < part.cols) store8(part.c + row * part.stride + col, {0, 0, 0, 0});
  }
}

}  // namespace assay::train::cuda::grouped
