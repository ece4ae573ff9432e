// What launches cost: nanoseconds of the device's time, by function and grid, as it was when one
// was last timed. One table per process. A place that two kinds of launch fall on holds something
// between the two: these numbers only bound what is in flight; runs are charged by the clock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

inline constexpr std::uint32_t kCosts = 4096;
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

// Copies and memsets: by kind and size, behind the launches in the same table.
enum class CopyKind : std::uint8_t {
  kToDevice,
  kToHost,
  kOnDevice,
  kUnified,  // the direction follows from the addresses
  kToPeer,
  kArray,
  kSet,
  kKinds
};
inline constexpr std::uint32_t kSizeClasses = 256;  // four for each power of two
inline constexpr std::uint32_t kCopyCosts =
    kSizeClasses * static_cast<std::uint32_t>(CopyKind::kKinds);
inline std::uint32_t size_class(std::uint64_t bytes) {
  if (bytes < 4) return static_cast<std::uint32_t>(bytes);
  const auto exponent = static_cast<std::uint32_t>(63 - __builtin_clzll(bytes));
  return exponent * 4 + static_cast<std::uint32_t>(bytes >> (exponent - 2) & 3);
}
inline std::uint32_t copy_place(CopyKind kind, std::uint64_t bytes) {
  return kCosts + static_cast<std::uint32_t>(kind) * kSizeClasses + size_class(bytes);
}
// What a copy takes until one of its size was timed: longer than on any GPU that is in use, since
// this bounds what is in flight.
std::uint64_t assumed_copy_ns(CopyKind kind, std::uint64_t bytes);

void forget_costs();
std::uint32_t cost_of(std::uint32_t place);
// Down at once and up in steps at first: a first launch is slow for reasons that do not come again.
// Slowly later: one and the same grid may be long and short in turn.
void learn_cost(std::uint32_t place, double ns);
// It has been timed several times: one more changes little.
bool is_settled(std::uint32_t place);

}  // namespace assay::gpu

extern "C" {
extern ASSAY_HIDDEN std::atomic<std::uint32_t>
    assay_gpu_costs[assay::gpu::kCosts + assay::gpu::kCopyCosts];
}
