// The fake driver's memory: allocations of contexts, pools that keep freed memory, handles with
// reference counts, memory of graphs, and the overhead of contexts and modules.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "memory_state.h"

namespace fake {

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;

class Memory {
 public:
  static Memory& the() {
    static Memory* const memory =
        new Memory;  // never destroyed: programs free memory until they exit
    return *memory;
  }

  // Bytes of a device, physical numbers.
  bool take(int device, std::uint64_t size) {
    if (try_take(device, size)) return true;
    sweep();
    return try_take(device, size);
  }
  void give(int device, std::uint64_t size) {
    memory_state().used[device] -= size;
    own_process().used[device] -= size;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  static std::uint64_t used(int device) { return memory_state().used[device].load(); }

  int allocate(std::uint64_t* address, std::uint64_t size, int device, std::intptr_t context) {
    if (address == nullptr || size == 0) return kInvalidValue;
    if (!take(device, size)) return kOutOfMemory;
    const std::lock_guard lock(mutex_);
    *address = new_address(size);
    live_[*address] = {size, device, context, nullptr};
    return kOk;
  }
  int release(std::uint64_t address) {
    if (address == 0) return kOk;
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) return kInvalidValue;
    drop(found->second);
    live_.erase(found);
    return kOk;
  }

  // Pools.
  // Device -1 is the host, which uses no device memory.
  struct Pool {
    int device;
    std::uint64_t used, reserved;
    std::uint64_t fresh;  // freed since the last synchronization: cannot be trimmed, as on a card
    std::uint64_t threshold;  // kept at a synchronization
    bool destroyed;           // exists until its last allocation is freed
  };
  Pool* default_pool(int device) { return &default_pools_[device]; }
  int allocate_from(Pool* pool, std::uint64_t* address, std::uint64_t size, int device,
                    std::intptr_t context) {
    if (address == nullptr || size == 0) return kInvalidValue;
    const std::lock_guard lock(mutex_);
    if (pool == nullptr) pool = default_pool(device);
    if (pool->used + size > pool->reserved) {
      const std::uint64_t more = pool->used + size - pool->reserved;
      if (pool->device >= 0 && !take(pool->device, more)) return kOutOfMemory;
      pool->reserved += more;
    }
    pool->used += size;
    pool->fresh = std::min(pool->fresh, pool->reserved - pool->used);
    *address = new_address(size);
    live_[*address] = {size, pool->device, context, pool};
    return kOk;
  }
  void trim(Pool* pool, std::uint64_t keep) {
    const std::lock_guard lock(mutex_);
    shrink(pool, keep);
  }
  Pool* new_pool(int device) {
    const std::lock_guard lock(mutex_);
    pools_.push_back(new Pool{device, 0, 0, 0, 0, false});
    return pools_.back();
  }
  void destroy_pool(Pool* pool) {
    const std::lock_guard lock(mutex_);
    pool->destroyed = true;
    pool->fresh = 0;
    shrink(pool, 0);
    if (pool->used == 0) forget(pool);
  }
  // A synchronization with the device.
  void settle_pools() {
    const std::lock_guard lock(mutex_);
    const auto settle = [&](Pool& pool) {
      pool.fresh = 0;
      shrink(&pool, pool.threshold);
    };
    for (Pool& pool : default_pools_) settle(pool);
    for (Pool* pool : pools_) settle(*pool);
  }

  // Handles and mappings.
  int create(std::uint64_t* handle, std::uint64_t size, int device) {
    if (handle == nullptr || size == 0) return kInvalidValue;
    if (!take(device, size)) return kOutOfMemory;
    const std::lock_guard lock(mutex_);
    *handle = new_address(size);
    handles_[*handle] = {size, device, 1};
    return kOk;
  }
  int map(std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    if (found == handles_.end()) return kInvalidValue;
    ++found->second.holders;
    mappings_[address] = {size, handle};
    return kOk;
  }
  int unmap(std::uint64_t address, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    for (std::uint64_t at = address; at < address + size;) {
      const auto found = mappings_.find(at);
      if (found == mappings_.end()) return kInvalidValue;
      at += found->second.size;
      drop_reference(found->second.handle);
      mappings_.erase(found);
    }
    return kOk;
  }
  int retain(std::uint64_t* handle, std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    if (found == mappings_.end()) return kInvalidValue;
    *handle = found->second.handle;
    ++handles_[*handle].holders;
    return kOk;
  }
  int release_handle(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return drop_reference(handle);
  }

  // Contexts and modules, each with an overhead.
  std::intptr_t new_context(int ordinal, int device) {
    const std::lock_guard lock(mutex_);
    take(device, context_bytes_);
    return 0x1000 + ordinal + 0x10000 * ++contexts_;
  }
  void retain_primary(int device) {
    const std::lock_guard lock(mutex_);
    if (primaries_[device]++ == 0) take(device, context_bytes_);
  }
  int release_primary(int device, std::intptr_t context) {
    {
      const std::lock_guard lock(mutex_);
      if (primaries_[device] == 0) return 201;
      if (--primaries_[device] > 0) return kOk;
    }
    destroy(context, device);
    return kOk;
  }
  void reset_primary(int device, std::intptr_t context) {
    {
      const std::lock_guard lock(mutex_);
      if (primaries_[device] == 0) return;
      primaries_[device] = 0;
    }
    destroy(context, device);
  }
  bool primary_is_active(int device) {
    const std::lock_guard lock(mutex_);
    return primaries_[device] > 0;
  }
  void destroy(std::intptr_t context, int device) {
    const std::lock_guard lock(mutex_);
    for (auto at = live_.begin(); at != live_.end();) {
      // Pools belong to devices: destroying a context frees nothing of theirs.
      if (at->second.context != context || at->second.pool != nullptr) {
        ++at;
        continue;
      }
      drop(at->second);
      at = live_.erase(at);
    }
    give(device, context_bytes_);
  }
  int load_module(int device) { return take(device, module_bytes_) ? kOk : kOutOfMemory; }

  // Graphs keep the peak of the largest one, until it is trimmed.
  bool take_for_graph(int device, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (size <= graphs_[device]) return true;
    if (!take(device, size - graphs_[device])) return false;
    graphs_[device] = size;
    return true;
  }
  std::uint64_t of_graphs(int device) {
    const std::lock_guard lock(mutex_);
    return graphs_[device];
  }
  void trim_graphs(int device) {
    const std::lock_guard lock(mutex_);
    give(device, graphs_[device]);
    graphs_[device] = 0;
  }
  std::uint64_t address_in_graph(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    return new_address(size);
  }

 private:
  struct Live {
    std::uint64_t size;
    int device;
    std::intptr_t context;
    Pool* pool;
  };
  struct Handle {
    std::uint64_t size;
    int device;
    int holders;
  };
  struct Mapping {
    std::uint64_t size;
    std::uint64_t handle;
  };

  Memory() {
    for (int i = 0; i < kMaxDevices; ++i) default_pools_[i].device = i;
  }
  bool try_take(int device, std::uint64_t size) {
    auto& used = memory_state().used[device];
    std::uint64_t before = used.load();
    do {
      if (before > total_ || size > total_ - before) return false;
    } while (!used.compare_exchange_weak(before, before + size));
    own_process().used[device] += size;
    return true;
  }
  std::uint64_t new_address(std::uint64_t size) {
    const std::uint64_t address = next_;
    next_ += (size + 511) & ~std::uint64_t{511};
    return address;
  }
  void shrink(Pool* pool, std::uint64_t keep) {
    const std::uint64_t left = std::max(pool->used + pool->fresh, std::min(keep, pool->reserved));
    if (pool->device >= 0) give(pool->device, pool->reserved - left);
    pool->reserved = left;
  }
  void forget(Pool* pool) {
    pools_.erase(std::find(pools_.begin(), pools_.end(), pool));
    delete pool;
  }
  void drop(const Live& live) {
    if (live.pool != nullptr) {
      live.pool->used -= live.size;
      if (!live.pool->destroyed) {
        live.pool->fresh += live.size;
        return;
      }
      shrink(live.pool, 0);
      if (live.pool->used == 0) forget(live.pool);
    } else {
      give(live.device, live.size);
    }
  }
  int drop_reference(std::uint64_t handle) {
    const auto found = handles_.find(handle);
    if (found == handles_.end()) return kInvalidValue;
    if (--found->second.holders > 0) return kOk;
    give(found->second.device, found->second.size);
    handles_.erase(found);
    return kOk;
  }

  std::uint64_t total_ = setting("FAKECUDA_MEMORY", std::uint64_t{1} << 30U);
  std::uint64_t context_bytes_ = setting("FAKECUDA_CONTEXT", 0);
  std::uint64_t module_bytes_ = setting("FAKECUDA_MODULE", 0);
  std::mutex mutex_;
  std::uint64_t next_ = 0x7F00'0000'0000;  // a range without other mappings
  std::map<std::uint64_t, Live> live_;
  std::map<std::uint64_t, Handle> handles_;
  std::map<std::uint64_t, Mapping> mappings_;
  Pool default_pools_[kMaxDevices] = {};
  std::vector<Pool*> pools_;
  std::intptr_t contexts_ = 0;
  int primaries_[kMaxDevices] = {};
  std::uint64_t graphs_[kMaxDevices] = {};
};

}  // namespace fake
