#include "observe/shim/gpu/costs.h"

extern "C" {
ASSAY_HIDDEN constinit std::atomic<std::uint32_t> assay_gpu_costs[assay::gpu::kCosts] = {};
}

namespace assay::gpu {
namespace {

// No kernel is shorter; and a function whose time was once almost nothing still comes to the
// checkpoint after so many launches.
constexpr double kLeastNs = 100;
constexpr double kMostNs = kUnknownCost - 1;

}  // namespace

void forget_costs() {
  for (auto& cost : assay_gpu_costs) cost.store(kUnknownCost, std::memory_order_relaxed);
}

std::uint32_t cost_of(std::uint32_t place) {
  return assay_gpu_costs[place % kCosts].load(std::memory_order_relaxed);
}

void learn_cost(std::uint32_t place, double ns) {
  ns = ns < kLeastNs ? kLeastNs : (ns > kMostNs ? kMostNs : ns);
  auto& cost = assay_gpu_costs[place % kCosts];
  const std::uint32_t before = cost.load(std::memory_order_relaxed);
  const double known = before;
  if (before != kUnknownCost) ns = ns < known ? (known + 3 * ns) / 4 : known + (ns - known) / 4;
  cost.store(static_cast<std::uint32_t>(ns), std::memory_order_relaxed);
}

}  // namespace assay::gpu
