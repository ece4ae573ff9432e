// The known pools of this process, and where their memory is.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/spin_lock.h"
#include "observe/wire/gpu_region.h"

namespace assay::gpu {

class PoolList {
 public:
  // Held while a pool of the list is used, so that it is not destroyed.
  SpinLock lock;

  // With the lock. kGpuDevices: not on a device.
  bool find(void* pool, std::uint32_t& device_index);
  void add(void* pool, std::uint32_t device_index);
  // False: not in the list.
  bool remove(void* pool, std::uint32_t& device_index);
  // Each pool of a device, its default pool first.
  template <typename Call>
  void each(std::uint32_t device_index, Call call) const {
    if (void* pool = own_[device_index].load(std::memory_order_relaxed); pool != nullptr)
      call(pool);
    for (const Pool& pool : made_) {
      if (pool.handle != nullptr && pool.device_index == device_index) call(pool.handle);
    }
  }

  // The default pool of a device.
  void know_own(std::uint32_t device_index);
  // In the child of a fork.
  void forget();

 private:
  struct Pool {
    void* handle;
    std::uint32_t device_index;
  };
  // Pools beyond this are not listed; their allocations count like any other.
  static constexpr std::size_t kMost = 64;
  bool find_own(void* pool, std::uint32_t& device_index);

  Pool made_[kMost] = {};
  std::atomic<void*> own_[wire::kGpuDevices] = {};
};
extern constinit PoolList pools;

}  // namespace assay::gpu
