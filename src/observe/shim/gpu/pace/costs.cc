#include "observe/shim/gpu/pace/costs.h"

extern "C" {
ASSAY_HIDDEN constinit std::atomic<std::uint32_t>
    assay_gpu_costs[assay::gpu::kCosts + assay::gpu::kCopyCosts] = {};
}

namespace assay::gpu {
namespace {

// A lower bound for kernels: a function that was once measured as almost nothing still reaches the
// pacing point after a bounded number of launches.
constexpr double kLeastNs = 100;
constexpr double kMostNs = kUnknownCost - 1;
// Measurements after which a cost becomes a slowly moving mean, so that a lane's correction
// (CostCorrection) can follow.
constexpr std::uint8_t kSettled = 4;
constexpr std::uint32_t kPlaces = kCosts + kCopyCosts;
constinit std::atomic<std::uint8_t> timed[kPlaces] = {};

}  // namespace

void forget_costs() {
  for (auto& cost : assay_gpu_costs) cost.store(kUnknownCost, std::memory_order_relaxed);
  for (auto& times : timed) times.store(0, std::memory_order_relaxed);
}

std::uint64_t assumed_copy_ns(CopyKind kind, std::uint64_t bytes) {
  constexpr std::uint64_t kStartNs = 5'000;
  constexpr std::uint64_t kMostAssumedNs = 100'000'000;
  const bool crosses_bus = kind != CopyKind::kOnDevice && kind != CopyKind::kSet;
  const std::uint64_t ns = kStartNs + bytes / (crosses_bus ? 10 : 500);  // GB/s are bytes per ns
  return ns < kMostAssumedNs ? ns : kMostAssumedNs;
}

std::uint32_t cost_of(std::uint32_t place) {
  return assay_gpu_costs[place % kPlaces].load(std::memory_order_relaxed);
}

bool is_settled(std::uint32_t place) {
  return timed[place % kPlaces].load(std::memory_order_relaxed) >= kSettled;
}

void learn_cost(std::uint32_t place, double ns) {
  place %= kPlaces;
  ns = ns < kLeastNs ? kLeastNs : (ns > kMostNs ? kMostNs : ns);
  auto& cost = assay_gpu_costs[place];
  const std::uint32_t before = cost.load(std::memory_order_relaxed);
  const std::uint8_t times = timed[place].load(std::memory_order_relaxed);
  const double known = before;
  if (times >= kSettled) {
    ns = known + (ns - known) / 8;
  } else {
    timed[place].store(times + 1, std::memory_order_relaxed);
    if (before != kUnknownCost) ns = ns < known ? (known + 3 * ns) / 4 : known + (ns - known) / 4;
  }
  cost.store(static_cast<std::uint32_t>(ns), std::memory_order_relaxed);
}

}  // namespace assay::gpu
