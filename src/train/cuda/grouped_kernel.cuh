// The kernel for the products of all experts in one launch, on Hopper; grouped_kernel.cu launches
// it.
//
// Persistent blocks, one per multiprocessor, form clusters of two. A cluster processes tiles of 256
// rows and 256 columns of the result, expert by expert; each block has half of the rows. One thread
// per block makes the tensor copy engine (TMA) fill a ring of stages in shared memory, each holding
// 64 elements of the inner dimension. Operand b is common to both blocks: each loads half of it and
// multicasts it to both. Two warpgroups multiply, each 64 rows by 256 columns. They do not wait for
// each other: while one writes its results, the other uses the tensor cores and the stages of the
// next tile are filled.
//
// Rows are divided into pieces of 64, assigned round-robin first to blocks and then to warpgroups,
// so that an expert's last rows are shared by both blocks; a piece without rows costs nothing.
#pragma once

#include "train/cuda/grouped_tiles.cuh"
#include "train/cuda/grouped_write.cuh"
#include "train/cuda/hopper.cuh"

namespace assay::train::cuda::grouped {

// A warpgroup's position in the ring of stages.
struct Turn {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1U;
    }
  }
};

struct Ring {
  std::uint32_t stages;  // addresses in shared memory
  std::uint32_t barriers;
  [[nodiscard]] __device__ std::uint32_t a(int stage, int box) const {
    return stages + static_cast<std::uint32_t>(stage) * kStage +
           static_cast<std::uint32_t>(box) * kBox;
  }
  [[nodiscard]] __device__ std::uint32_t b(int stage, int box) const {
    return a(stage, static_cast<int>(kBoxesA) + box);
  }
  [[nodiscard]] __device__ std::uint32_t full(int stage) const {
    return barriers + static_cast<std::uint32_t>(stage) * 8;
  }
  [[nodiscard]] __device__ std::uint32_t empty(int stage) const { return full(kStages + stage); }
};

template <GroupedForm kForm>
__device__ __forceinline__ void copy_operands(const CUtensorMap& map_a, const CUtensorMap& map_b,
                                              const CUtensorMap& map_c,
                                              const GroupedArguments& arguments, const Ring& ring,
                                              int rank) {
  using hopper::copy_box;
  constexpr std::uint16_t kAllBlocks = (1U << kCluster) - 1;
  Tiles<kForm> tiles(arguments);
  Turn turn;
  for (Tile tile; tiles.next(tile);) {
    const int stages = tiles.stages(tile);
    const int own_b = kWide / kPiece / kCluster / (tiles.is_narrow(tile) ? 2 : 1);
    bool has[kMultipliers];
    std::uint32_t boxes = static_cast<std::uint32_t>(own_b * kCluster);
    for (int i = 0; i < kMultipliers; ++i) {
      has[i] = tiles.row_of(tile, i, rank) < tiles.rows_of(tile);
      boxes += has[i] ? 1 : 0;
    }
    for (int i = 0; i < stages; ++i) {
      hopper::wait_for(ring.empty(turn.stage), turn.parity ^ 1U);
      const std::uint32_t full = ring.full(turn.stage);
      hopper::arrive_expecting(full, boxes * kBox);
      const int at = i * kDeep;
      for (int w = 0; w < kMultipliers; ++w) {
        if (!has[w]) continue;
        const int row = tiles.row_of(tile, w, rank);
        if constexpr (kForm == GroupedForm::kWeightGradients) {
          copy_box(ring.a(turn.stage, w), map_a, full, row, tile.first + at, 0);
        } else {
          copy_box(ring.a(turn.stage, w), map_a, full, at, tile.first + row, 0);
        }
      }
      for (int j = 0; j < own_b; ++j) {
        const int box = rank * own_b + j;
        const int col = tile.col + box * kPiece;
        int x = col;
        int y = at;
        int z = tile.expert;
        if constexpr (kForm == GroupedForm::kRows) {
          x = at;
          y = col;
        }
        if constexpr (kForm == GroupedForm::kWeightGradients) {
          y = tile.first + at;
          z = 0;
        }
        hopper::copy_box_to(ring.b(turn.stage, box), map_b, full, x, y, z, kAllBlocks);
      }
      turn.advance();
    }
    if (!arguments.adds || stages == 0) continue;
    // The previous contents of c, which a warpgroup adds to, get a stage per warpgroup.
    for (int w = 0; w < kMultipliers; ++w) {
      hopper::wait_for(ring.empty(turn.stage), turn.parity ^ 1U);
      const std::uint32_t full = ring.full(turn.stage);
      const int cols = has[w] ? own_b * kCluster : 0;
      hopper::arrive_expecting(full, static_cast<std::uint32_t>(cols) * kBox);
      const int row = tiles.row_of(tile, w, rank);
      for (int box = 0; box < cols; ++box) {
        copy_box(ring.a(turn.stage, box), map_c, full, tile.col + box * kPiece,
                 kForm == GroupedForm::kWeightGradients ? row : tile.first + row,
                 kForm == GroupedForm::kWeightGradients ? tile.expert : 0);
      }
      turn.advance();
    }
  }
}

__device__ inline void release(const Ring& ring, int stage) {
  const auto lane = threadIdx.x % kWarp;
  if (lane < kCluster) hopper::arrive_at(ring.empty(stage), lane);
}

// Zeroes the rows of the last stage that are past the expert's end, when the sum is over rows.
__device__ inline void clear_rows(std::uint32_t box, int from) {
  const std::uint32_t begin = box + static_cast<std::uint32_t>(from) * kBoxRow;
  for (std::uint32_t at = begin + threadIdx.x % kWarpgroup * 16; at < box + kBox;
       at += kWarpgroup * 16) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0) : "memory");
  }
}

constexpr int kRowsBarrier = 1;  // and kRowsBarrier + 1 for the second warpgroup

// Computes one warpgroup's part of a tile. `rows`: the number of rows summed over (weight
// gradients).
template <GroupedForm kForm, int kWidth>
__device__ __forceinline__ void sum_tile(float (&sums)[kWidth / 2], const Ring& ring, Turn& turn,
                                         int multiplier, int stages, int rows) {
  constexpr bool kAcrossA = kForm == GroupedForm::kWeightGradients;
  constexpr bool kAcrossB = kForm != GroupedForm::kRows;
  constexpr int kSteps = kDeep / 16;
  // Advances by 16 elements within a row, or by 16 rows.
  constexpr std::uint64_t kStepA = hopper::further_by(kAcrossA ? 16 * kBoxRow : 32);
  constexpr std::uint64_t kStepB = hopper::further_by(kAcrossB ? 16 * kBoxRow : 32);
  const std::uint64_t operand = hopper::operand(kBoxGroup, kBox);
  int last = 0;
  int i = 0;
#pragma unroll 1
  do {
    hopper::wait_for(ring.full(turn.stage), turn.parity);
    const std::uint32_t a = ring.a(turn.stage, multiplier);
    const std::uint32_t b = ring.b(turn.stage, 0);
    if constexpr (kForm == GroupedForm::kWeightGradients) {
      const int there = rows - i * kDeep;
      if (there < kDeep) {
        clear_rows(a, there);
        for (int box = 0; box < kWidth / kPiece; ++box) clear_rows(ring.b(turn.stage, box), there);
        hopper::fence_shared_writes();
        hopper::sync_some(kRowsBarrier + multiplier, kWarpgroup);
      }
    }
    const std::uint64_t operand_a = hopper::at_address(operand, a);
    const std::uint64_t operand_b = hopper::at_address(operand, b);
    hopper::begin_products();
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      hopper::multiply<kWidth, kAcrossA, kAcrossB>(sums, operand_a + k * kStepA,
                                                   operand_b + k * kStepB);
    }
    hopper::commit_products();
    hopper::wait_for_products<1>();
    if (i > 0) release(ring, last);
    last = turn.stage;
    turn.advance();
  } while (++i < stages);
  hopper::wait_for_products<0>();
  release(ring, last);
}

__device__ inline void pass_stages(const Ring& ring, Turn& turn, int stages) {
  for (int i = 0; i < stages; ++i) {
    hopper::wait_for(ring.full(turn.stage), turn.parity);
    __syncwarp();
    release(ring, turn.stage);
    turn.advance();
  }
}

template <GroupedForm kForm, int kWidth>
__device__ __forceinline__ void make_part(const Part& part, bool adds, const Ring& ring, Turn& turn,
                                          int multiplier, int stages, int rows) {
  float sums[kWidth / 2] = {};
  sum_tile<kForm, kWidth>(sums, ring, turn, multiplier, stages, rows);
  if (adds) {
    pass_stages(ring, turn, multiplier);
    hopper::wait_for(ring.full(turn.stage), turn.parity);
    add_boxes<kWidth>(sums, ring.a(turn.stage, 0));
    pass_stages(ring, turn, kMultipliers - multiplier);
  }
  write_sums<kWidth>(sums, part);
}

template <GroupedForm kForm>
__device__ __forceinline__ void multiply_tiles(const GroupedArguments& arguments, const Ring& ring,
                                               int multiplier, int rank) {
  Tiles<kForm> tiles(arguments);
  Turn turn;
  for (Tile tile; tiles.next(tile);) {
    const int stages = tiles.stages(tile);
    const int row = tiles.row_of(tile, multiplier, rank);
    const int rows = min(kPiece, tiles.rows_of(tile) - row);
    if (rows <= 0) {
      pass_stages(ring, turn, stages + (arguments.adds && stages > 0 ? kMultipliers : 0));
      continue;
    }
    const std::int64_t above = kForm == GroupedForm::kWeightGradients
                                   ? static_cast<std::int64_t>(tile.expert) * arguments.height
                                   : tile.first;
    const Part part{arguments.c + (above + row) * arguments.stride + tile.col, arguments.stride,
                    rows, min(kWide, arguments.width - tile.col)};
    if (stages == 0) {  // an expert without rows
      if (!arguments.adds) write_zeros(part);
    } else if (tiles.is_narrow(tile)) {
      make_part<kForm, kWide / 2>(part, arguments.adds, ring, turn, multiplier, stages, tile.rows);
    } else {
      make_part<kForm, kWide>(part, arguments.adds, ring, turn, multiplier, stages, tile.rows);
    }
  }
}

// Launched in clusters of kCluster blocks.
template <GroupedForm kForm>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_kernel(const __grid_constant__ CUtensorMap map_a,
                   const __grid_constant__ CUtensorMap map_b,
                   const __grid_constant__ CUtensorMap map_c,
                   const __grid_constant__ GroupedArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::uint8_t shared[];
  const std::uint32_t begin = (hopper::shared_address(shared) + kBoxGroup - 1) & ~(kBoxGroup - 1);
  const Ring ring{begin, begin + kStages * kStage};
  const int rank = static_cast<int>(hopper::rank_in_cluster());
  if (threadIdx.x == 0) {
    hopper::prefetch_map(map_a);
    hopper::prefetch_map(map_b);
    hopper::prefetch_map(map_c);
    for (int i = 0; i < kStages; ++i) {
      hopper::init_barrier(ring.full(i), 1);
      hopper::init_barrier(ring.empty(i), kCluster * kMultipliers * kWarpgroup / kWarp);
    }
    hopper::fence_barrier_init();
  }
  hopper::sync_cluster();
  const int role = __shfl_sync(kEveryLane, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (role == 0) {
    hopper::give_registers<kRegistersToCopy>();
    if (threadIdx.x == 0) {
      copy_operands<kForm>(map_a, map_b, map_c, arguments, ring, rank);
    }
  } else {
    hopper::take_registers<kRegistersToMultiply>();
    multiply_tiles<kForm>(arguments, ring, role - 1, rank);
  }
  // The other block may still be writing to this one's shared memory or arriving at its barriers.
  __syncwarp();
  hopper::sync_cluster();
#endif
}

}  // namespace assay::train::cuda::grouped
