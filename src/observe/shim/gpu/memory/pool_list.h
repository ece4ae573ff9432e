// The pools of this process that are known, and where their memory is.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {

class PoolList {
 public:
  // The caller has it while it uses a pool of the list: it must not be destroyed then.
  SpinLock lock;

  // With the lock. kGpuDevices: not on a device.
  bool find(void* pool, std::uint32_t& line);
  void add(void* pool, std::uint32_t line);
  // False: it was not in it.
  bool remove(void* pool, std::uint32_t& line);
  // Each pool of a device, its own first.
  template <typename Call>
  void each(std::uint32_t line, Call call) const {
    if (void* pool = own_[line].load(std::memory_order_relaxed); pool != nullptr) call(pool);
    for (const Pool& pool : made_) {
      if (pool.handle != nullptr && pool.line == line) call(pool.handle);
    }
  }

  // The default pool of a device.
  void know_own(std::uint32_t line);
  // In the child of a fork.
  void forget();

 private:
  struct Pool {
    void* handle;
    std::uint32_t line;
  };
  // Memory of what does not fit counts like any other.
  static constexpr std::size_t kMost = 64;
  bool find_own(void* pool, std::uint32_t& line);

  Pool made_[kMost] = {};
  std::atomic<void*> own_[wire::kGpuDevices] = {};
};
extern constinit PoolList pools;

}  // namespace assay::gpu
