// A lock within one process, held for a few instructions. Not for the region: a killed process
// would not unlock it.
#pragma once

#include <sched.h>

#include <atomic>

namespace assay::gpu {

class SpinLock {
 public:
  bool try_lock_bounded() {
    constexpr int kSpins = 64;
    constexpr int kYields = 100'000;
    for (int i = 0; i < kSpins + kYields; ++i) {
      if (!held_.exchange(true, std::memory_order_acquire)) return true;
      if (i >= kSpins) sched_yield();
    }
    return false;
  }
  void lock() {
    while (!try_lock_bounded()) {
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }
  // In the child of a fork, which has one thread, whatever its parent's threads were doing.
  void reset() { held_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace assay::gpu
