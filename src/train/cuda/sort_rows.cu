// Sorts slots by expert: a stable counting sort in three launches.
//   1  each block counts its slots by expert
//   2  one block sums the counts: the first row of each expert, and of each block within it
//   3  each block assigns rows to its slots
// Within a block warps have consecutive slots, as do the lanes of a warp: nothing depends on
// timing.
#include "train/cuda/kernels.h"
#include "train/cuda/vectors.cuh"

namespace assay::train::cuda {
namespace {

constexpr int kSortThreads = 256;
constexpr int kSortWarps = kSortThreads / kWarp;
constexpr int kWarpSlots = kSortSlots / kSortWarps;
constexpr int kScanThreads = 1024;
static_assert(kWarpSlots % kWarp == 0);

struct SortArguments {
  const std::int32_t* experts;  // the expert of each slot
  std::int32_t* rows;           // the row of each slot
  std::int32_t* slots;          // the slot of each row
  std::int32_t* first_rows;     // of experts, then the end
  std::int32_t* row_counts;     // of experts, or null
  std::int32_t* on_host;        // a copy of the first rows in mapped host memory; or null
  std::int32_t* counts;         // per expert and block: counts[expert][block]
  int slot_count;
  int row_count;
  int expert_count;
  int blocks;
  int most_rows;
};

// Shared memory: one counter per warp and expert.
template <class Visit>
__device__ void for_slots_of_warp(const SortArguments& a, Visit visit) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first = static_cast<int>(blockIdx.x) * kSortSlots + warp * kWarpSlots;
  for (int i = 0; i < kWarpSlots; i += kWarp) {
    const int slot = first + i + lane;
    visit(slot, slot < a.slot_count ? a.experts[slot] : -1);
  }
}

__device__ void count_by_warp(const SortArguments& a, std::int32_t* counters) {
  for (int i = static_cast<int>(threadIdx.x); i < kSortWarps * a.expert_count; i += kSortThreads) {
    counters[i] = 0;
  }
  __syncthreads();
  std::int32_t* own = counters + static_cast<int>(threadIdx.x) / kWarp * a.expert_count;
  for_slots_of_warp(a, [&](int, int expert) {
    if (expert >= 0) atomicAdd(own + expert, 1);
  });
  __syncthreads();
}

__global__ void __launch_bounds__(kSortThreads) count_kernel(SortArguments a) {
  extern __shared__ std::int32_t counters[];
  count_by_warp(a, counters);
  for (int e = static_cast<int>(threadIdx.x); e < a.expert_count; e += kSortThreads) {
    std::int32_t sum = 0;
    for (int w = 0; w < kSortWarps; ++w) sum += counters[w * a.expert_count + e];
    a.counts[static_cast<std::int64_t>(e) * a.blocks + blockIdx.x] = sum;
  }
}

// The sum over the lanes before this one; `total` is that of all lanes.
__device__ std::int32_t sum_before(std::int32_t value, std::int32_t& total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::int32_t sum = value;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const std::int32_t other = __shfl_up_sync(kEveryLane, sum, offset);
    if (lane >= offset) sum += other;
  }
  total = __shfl_sync(kEveryLane, sum, kWarp - 1);
  return sum - value;
}

__global__ void __launch_bounds__(kScanThreads) scan_kernel(SortArguments a) {
  __shared__ std::int32_t totals[kMostExperts];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int e = warp; e < a.expert_count; e += kScanThreads / kWarp) {
    std::int32_t* counts = a.counts + static_cast<std::int64_t>(e) * a.blocks;
    std::int32_t before = 0;
    for (int first = 0; first < a.blocks; first += kWarp) {
      const int block = first + lane;
      std::int32_t total = 0;
      const std::int32_t sum = sum_before(block < a.blocks ? counts[block] : 0, total);
      if (block < a.blocks) counts[block] = before + sum;
      before += total;
    }
    if (lane == 0) totals[e] = before;
  }
  __syncthreads();
  if (warp != 0) return;
  std::int32_t row = 0;
  for (int first = 0; first < a.expert_count; first += kWarp) {
    const int e = first + lane;
    const std::int32_t kept = e < a.expert_count ? min(totals[e], a.most_rows) : 0;
    std::int32_t total = 0;
    const std::int32_t begin = row + sum_before(kept, total);
    row += total;
    if (e < a.expert_count) {
      a.first_rows[e] = begin;
      if (a.row_counts != nullptr) a.row_counts[e] = kept;
      if (a.on_host != nullptr) a.on_host[e] = begin;
    }
  }
  if (lane != 0) return;
  a.first_rows[a.expert_count] = row;
  if (a.on_host != nullptr) a.on_host[a.expert_count] = row;
}

__global__ void __launch_bounds__(kSortThreads) place_kernel(SortArguments a) {
  extern __shared__ std::int32_t counters[];
  count_by_warp(a, counters);
  // Turns counts into the next row of each warp.
  for (int e = static_cast<int>(threadIdx.x); e < a.expert_count; e += kSortThreads) {
    std::int32_t row =
        a.first_rows[e] + a.counts[static_cast<std::int64_t>(e) * a.blocks + blockIdx.x];
    for (int w = 0; w < kSortWarps; ++w) {
      std::int32_t& counter = counters[w * a.expert_count + e];
      const std::int32_t count = counter;
      counter = row;
      row += count;
    }
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::int32_t* next = counters + static_cast<int>(threadIdx.x) / kWarp * a.expert_count;
  for_slots_of_warp(a, [&](int slot, int expert) {
    const unsigned alike = __match_any_sync(kEveryLane, expert);
    const int before = __popc(alike & ((1U << lane) - 1U));
    const std::int32_t row = expert >= 0 ? next[expert] + before : 0;
    __syncwarp();
    if (expert >= 0 && before == 0) next[expert] += __popc(alike);
    __syncwarp();
    if (expert < 0) return;
    const bool fits = row < a.first_rows[expert + 1];
    a.rows[slot] = fits ? row : -1;
    if (fits) a.slots[row] = slot;
  });
  // Unused rows.
  for (int row =
           a.first_rows[a.expert_count] + static_cast<int>(blockIdx.x * kSortThreads + threadIdx.x);
       row < a.row_count; row += static_cast<int>(gridDim.x) * kSortThreads) {
    a.slots[row] = -1;
  }
}

}  // namespace

std::int64_t sort_blocks(std::int64_t slots) {
  return (slots + kSortSlots - 1) / kSortSlots;
}

void sort_rows(Device& device, std::int64_t most_rows, Matrix experts, Matrix rows, Matrix slots,
               Matrix first_rows, Matrix row_counts, std::int32_t* on_host) {
  device.executed(step::OpKind::kSortRows, {experts}, {rows, slots, first_rows, row_counts});
  SortArguments a{};
  a.experts = experts.as<std::int32_t>();
  a.rows = rows.as<std::int32_t>();
  a.slots = slots.as<std::int32_t>();
  a.first_rows = first_rows.as<std::int32_t>();
  a.row_counts = row_counts.as<std::int32_t>();
  a.on_host = on_host;
  a.counts = static_cast<std::int32_t*>(device.workspace.routing);
  a.slot_count = static_cast<int>(experts.rows * experts.cols);
  a.row_count = static_cast<int>(slots.rows);
  a.expert_count = static_cast<int>(first_rows.cols - 1);
  a.blocks = static_cast<int>(sort_blocks(a.slot_count));
  a.most_rows = static_cast<int>(most_rows);
  const auto blocks = static_cast<unsigned>(a.blocks);
  const std::size_t shared =
      std::size_t{kSortWarps} * static_cast<std::size_t>(a.expert_count) * sizeof(std::int32_t);
  count_kernel<<<blocks, kSortThreads, shared, device.stream>>>(a);
  scan_kernel<<<1, kScanThreads, 0, device.stream>>>(a);
  place_kernel<<<blocks, kSortThreads, shared, device.stream>>>(a);
  device.launched("rows of experts");
}

}  // namespace assay::train::cuda
