// Costs of launches: nanoseconds of device time, by function and grid, from the last measurements.
// One table per process. Two kinds of launch that share an entry get a value between the two: costs
// only bound what is in flight; runs are charged by the clock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/gpu.h"

namespace assay::gpu {

inline constexpr std::uint32_t kCosts = 4096;
// More than any budget, so that work that was never timed goes to the checkpoint.
inline constexpr std::uint32_t kUnknownCost = 1U << 30U;

// As computed by the assembly (paced.cc): the upper 12 bits of a product.
inline constexpr std::uint32_t kCostFactors[] = {0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F};
inline std::uint32_t cost_place(const void* function, std::uint32_t x, std::uint32_t y,
                                std::uint32_t z) {
  const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(function));
  return ((x * kCostFactors[0] + y * kCostFactors[1] + z * kCostFactors[2] + low) *
          kCostFactors[3]) >>
         20U;
}

// Copies and memsets: by kind and size, after the launches in the same table.
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
// Assumed cost of a copy until one of its size was timed: longer than on any current GPU, because
// it bounds what is in flight.
std::uint64_t assumed_copy_ns(CopyKind kind, std::uint64_t bytes);

void forget_costs();
std::uint32_t cost_of(std::uint32_t place);
// The first measurements lower the cost at once and raise it in steps, because a first launch is
// slow for reasons that do not recur. Later ones change it slowly, because one grid may alternate
// between long and short times.
void learn_cost(std::uint32_t place, double ns);
// It was timed often enough that one more measurement changes little.
bool is_settled(std::uint32_t place);

}  // namespace assay::gpu

extern "C" {
extern ASSAY_HIDDEN std::atomic<std::uint32_t>
    assay_gpu_costs[assay::gpu::kCosts + assay::gpu::kCopyCosts];
}
