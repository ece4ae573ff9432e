// Maps an address or handle to facts about it: the size of an allocation, the nodes of a graph.
// Lookup and removal take constant time.
//
// Shards with a lock each, open addressing, no tombstones; memory comes from mmap. If that fails,
// entries are dropped, and their removal finds nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/shim/gpu/spin_lock.h"

namespace assay::gpu {

struct SizeMapValue {
  std::uint64_t size = 0;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

class SizeMap {
 public:
  // Replaces an existing entry, which is returned. False: out of memory.
  bool insert(std::uint64_t key, const SizeMapValue& value, SizeMapValue* replaced = nullptr);
  bool find(std::uint64_t key, SizeMapValue& value);
  // Finds and removes.
  bool take(std::uint64_t key, SizeMapValue& value);
  // Adds to `second` of an entry and returns the entry; removes it if `second` becomes 0.
  bool add(std::uint64_t key, int to_second, SizeMapValue& value);
  // Removes all entries with this `second`, and reports each.
  template <typename Visit>
  void take_all(std::uint32_t second, Visit visit);
  // In the child of a fork: drops all entries, which are the parent's. The memory is not freed.
  void forget();

 private:
  static constexpr std::size_t kShards = 64;
  struct Entry {
    std::uint64_t key;  // 0: empty
    SizeMapValue value;
  };
  struct Shard {
    SpinLock lock;
    Entry* entries = nullptr;
    std::size_t capacity = 0;  // a power of two
    std::size_t used = 0;
  };
  static bool grow(Shard& shard);
  static std::size_t place(const Shard& shard, std::uint64_t key);
  static std::size_t find_in(const Shard& shard, std::uint64_t key);
  static Entry* entry_of(const Shard& shard, std::uint64_t key);
  static void remove(Shard& shard, std::size_t hole);
  Shard& shard_of(std::uint64_t key);

  Shard shards_[kShards];
};

template <typename Visit>
void SizeMap::take_all(std::uint32_t second, Visit visit) {
  for (Shard& shard : shards_) {
    shard.lock.lock();
    // Removal moves later entries up, also across the end: so each index is repeated until it holds
    // another entry.
    for (std::size_t at = 0; at < shard.capacity;) {
      const Entry entry = shard.entries[at];
      if (entry.key == 0 || entry.value.second != second) {
        ++at;
        continue;
      }
      remove(shard, at);
      visit(entry.value);
    }
    shard.lock.unlock();
  }
}

extern constinit SizeMap pointers;       // device memory, by address
extern constinit SizeMap handles;        // cuMemCreate, with the reference count
extern constinit SizeMap mappings;       // mappings of such memory
extern constinit SizeMap arrays;         // arrays and mipmapped ones
extern constinit SizeMap host_pointers;  // page-locked memory
extern constinit SizeMap graphs;         // executable graphs: nodes, and kernels among them
extern constinit SizeMap communicators;  // NCCL's: id, ranks, rank
extern constinit SizeMap parts;          // number of splits of a communicator
inline SizeMap* const kAllMaps[] = {&pointers,      &handles, &mappings,      &arrays,
                                    &host_pointers, &graphs,  &communicators, &parts};

}  // namespace assay::gpu
