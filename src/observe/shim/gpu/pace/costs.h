// What launches cost: nanoseconds of the device's time, by function and grid, as it was when one
// was last timed. One table per process. A place that two kinds of launch fall on holds something
// between the two: these numbers only bound what is in flight, nobody is charged by them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

inline constexpr std::size_t kCosts = 4096;
// More than any budget, so that what was never timed comes to the checkpoint.
inline constexpr std::uint32_t kUnknownCost = 1U << 30U;

// The same as the assembly computes (paced.cc): the upper 12 bits of a product.
inline constexpr std::uint32_t kCostFactors[] = {0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F};
inline std::uint32_t cost_place(const void* function, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
  const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(function));
  return ((x * kCostFactors[0] + y * kCostFactors[1] + z * kCostFactors[2] + low) *
          kCostFactors[3]) >>
         20U;
}

void forget_costs();
std::uint32_t cost_of(std::uint32_t place);
// Down at once and up in steps at first: a first launch is slow for reasons that do not come again.
// Slowly later: one and the same grid may be long and short in turn.
void learn_cost(std::uint32_t place, double ns);
// It has been timed several times: one more changes little.
bool is_settled(std::uint32_t place);

}  // namespace assay::gpu

extern "C" {
extern ASSAY_HIDDEN std::atomic<std::uint32_t> assay_gpu_costs[assay::gpu::kCosts];
}
