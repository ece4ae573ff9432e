#include "train/cuda/draw.h"
#include "train/cuda/vectors.cuh"
#include "train/normal_draw.h"

namespace assay::train::cuda {
namespace {

constexpr int kDrawThreads = 256;

__device__ void write_drawn(const DrawnTo& to, std::int64_t i, float value) {
  Half high = 0;
  Half low = 0;
  split_halves(value, high, low);
  to.high[i] = high;
  const std::int64_t at = i - to.low_first;
  if (at >= 0 && at < to.low_count) to.low[at] = low;
}

// One thread for each group of four numbers drawn together, or the part of it within a run.
__global__ void __launch_bounds__(kDrawThreads)
    draw_kernel(NormalNumbers numbers, DrawnRuns runs, DrawnTo to, UncertainList uncertain,
                std::int64_t fours_per_run) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kDrawThreads + threadIdx.x;
  const std::int64_t begin = thread / fours_per_run * runs.run;  // start of the run in memory
  if (begin >= runs.count) return;
  const std::int64_t first = runs.first + thread / fours_per_run * runs.apart;
  const std::int64_t block = first / 4 + thread % fours_per_run;
  if (block * 4 >= first + runs.run) return;
  double four[4];
  draw_four(numbers.seed, numbers.name, static_cast<std::uint64_t>(block), four);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const std::int64_t in_run = block * 4 + j - first;
    if (in_run < 0 || in_run >= runs.run) continue;
    const double value = __dmul_rn(numbers.deviation, four[j]);
    const std::int64_t i = begin + in_run;
    write_drawn(to, i, __double2float_rn(value));
    if (rounds_safely(static_cast<std::uint64_t>(__double_as_longlong(value)))) continue;
    const auto place = atomicAdd(reinterpret_cast<unsigned long long*>(uncertain.count), 1ULL);
    if (place < uncertain.most) uncertain.elements[place] = i;
  }
}

__global__ void __launch_bounds__(kDrawThreads)
    put_kernel(const Known* list, std::int64_t count, DrawnTo to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kDrawThreads + threadIdx.x;
  if (at < count) write_drawn(to, list[at].element, list[at].value);
}

}  // namespace

void draw(Device& device, const NormalNumbers& numbers, const DrawnRuns& runs, const DrawnTo& to,
          const UncertainList& uncertain) {
  const std::int64_t fours_per_run = runs.run / 4 + 2;  // both ends may cut a group of four
  const std::int64_t threads = runs.count / runs.run * fours_per_run;
  draw_kernel<<<blocks_for(threads, kDrawThreads), kDrawThreads, 0, device.stream>>>(
      numbers, runs, to, uncertain, fours_per_run);
  device.launched("initial weights");
}

void put(Device& device, const Known* list, std::int64_t count, const DrawnTo& to) {
  put_kernel<<<blocks_for(count, kDrawThreads), kDrawThreads, 0, device.stream>>>(list, count, to);
  device.launched("initial weights");
}

}  // namespace assay::train::cuda
