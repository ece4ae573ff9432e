// Limits into a run's region, and what the region tells: what holds, what is used, what was done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/wire/gpu_region.h"
#include "share/plan.h"

namespace assay::share {

// What the plan says, and nothing else, is changed; processes of the run notice by the generation.
// False if the region has no line left for a device: then nothing was changed.
bool apply(const LimitPlan& plan, wire::GpuRegion& region);
// No limits at all.
void lift_all(wire::GpuRegion& region);

struct DeviceState {
  Uuid uuid{};
  std::uint64_t total = 0;  // 0: not known
  std::uint64_t used = 0;   // by all processes of the run
  std::uint64_t limit = 0;  // 0: none
  wire::GpuShare share;
  std::uint64_t busy_ns = 0;  // 0 as long as the run's launches are not paced
  std::uint64_t waited_ns = 0;
};

struct RunState {
  wire::GpuTotals totals;
  std::uint64_t launches = 0;  // calls that gave a GPU work: kernels that ran at once, and graphs
  std::uint64_t kernels = 0;   // that ran, those of graphs among them
  std::uint64_t refused = 0;   // allocations
  std::uint64_t matmuls = 0;   // calls of cuBLAS
  double matmul_flops = 0;     // of those that ran when they were called
  std::uint64_t copied_bytes = 0;
  std::uint64_t collectives = 0;
  std::uint64_t collective_bytes = 0;
  std::size_t processes = 0;  // alive
  std::vector<DeviceState> devices;
  Limits all;  // said for devices without limits of their own
};

// `living[i]`: the process of slot i lives; what lies beyond the list does not.
RunState state_of(const wire::GpuRegion& region, const std::vector<bool>& living);

// "GPU-a0a0a0a0-…", as NVML writes it. A slice's is told the same way: the region knows no kinds.
std::string uuid_text(const Uuid& uuid);

}  // namespace assay::share
