// Writes limits into a run's GPU region, and reads limits, usage and counters from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/wire/gpu_region.h"
#include "share/limit_plan.h"

namespace assay::share {

// Changes only the limits that are in the plan; the run's processes notice by the generation
// number. False, with nothing changed, if the region has no row left for a device.
bool apply(const LimitPlan& plan, wire::GpuRegion& region);
// Removes all limits.
void clear_limits(wire::GpuRegion& region);

struct DeviceState {
  wire::GpuUuid uuid{};
  std::uint64_t total = 0;  // 0: unknown
  std::uint64_t used = 0;   // by all processes of the run
  std::uint64_t limit = 0;  // 0: none
  wire::GpuShare share;
  std::uint64_t busy_ns = 0;  // GPU time used; counted only while launches are paced
  std::uint64_t waited_ns = 0;
};

// What the run's processes have done on GPUs so far.
struct RunState {
  wire::GpuTotals totals;
  std::uint64_t launches = 0;  // kernels outside graphs, and graphs
  std::uint64_t kernels = 0;   // kernels executed, including those in graphs
  std::uint64_t refused = 0;   // allocations
  std::uint64_t matmuls = 0;   // cuBLAS calls
  double matmul_flops = 0;     // without calls captured into graphs
  std::uint64_t copied_bytes = 0;
  std::uint64_t collectives = 0;
  std::uint64_t collective_bytes = 0;
  std::size_t processes = 0;  // running
  std::vector<DeviceState> devices;
  Limits all;  // for devices without limits of their own
};

// `living[i]`: the process of slot i is running. Slots beyond the list are not.
RunState state_of(const wire::GpuRegion& region, const std::vector<bool>& living);

}  // namespace assay::share
