// Threads' budgets: how much each may launch until its next pacing point, stored in its block of
// the region. The launch path subtracts from it; everything else is here.
#pragma once

#include <cstdint>

#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {

inline void grant(wire::GpuBlock& to, std::int64_t ns, std::uint64_t now) {
  to.granted_at_ns.store(now, std::memory_order_relaxed);
  to.granted.store(ns, std::memory_order_relaxed);
  to.budget.store(ns, std::memory_order_relaxed);
}

inline std::uint64_t used_of(const wire::GpuBlock& block, std::uint32_t subtracted) {
  const std::int64_t granted = block.granted.load(std::memory_order_relaxed);
  const std::int64_t used = granted - block.budget.load(std::memory_order_relaxed) - subtracted;
  return used <= 0 || used > granted ? 0 : static_cast<std::uint64_t>(used);
}

// Work that a thread has launched since its last pacing point, and since when.
struct BudgetUse {
  std::uint64_t estimated_ns;
  std::uint64_t since_ns;
};
inline BudgetUse used_since(const wire::GpuBlock& block, std::uint32_t subtracted,
                            std::uint64_t now) {
  const std::uint64_t since = block.granted_at_ns.load(std::memory_order_relaxed);
  return {used_of(block, subtracted), since == 0 || since > now ? now : since};
}

// At the end of a turn the other threads' budgets are withdrawn as well. Returns what they have
// launched since their last pacing point, which is in flight, too. (A thread that is launching at
// this moment may keep some of its budget; it reaches its pacing point within a millisecond.)
inline std::uint64_t withdraw_budgets(const wire::GpuBlock& mine) {
  if (region() == nullptr || slot() < 0) return 0;
  std::uint64_t used = 0;
  std::uint32_t at = region()->slots[slot()].blocks.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < wire::kGpuBlocks && at != 0 && at <= wire::kGpuBlocks; ++i) {
    wire::GpuBlock& block = region()->blocks[at - 1];
    if (&block != &mine && block.granted.load(std::memory_order_relaxed) != 0) {
      used += used_of(block, 0);
      grant(block, 0, 0);
    }
    at = block.sibling.load(std::memory_order_relaxed);
  }
  return used;
}

}  // namespace assay::gpu
