#include "observe/shim/gpu/size_map.h"

#include <sys/mman.h>

#include "observe/wire/gpu_region.h"

namespace assay::gpu {

constinit SizeMap pointers;
constinit SizeMap handles;
constinit SizeMap mappings;
constinit SizeMap arrays;
constinit SizeMap host_pointers;
constinit SizeMap graphs;
constinit SizeMap communicators;
constinit SizeMap parts;

SizeMap::Shard& SizeMap::shard_of(std::uint64_t key) {
  return shards_[wire::gpu_mix(key) >> 58U];
}

std::size_t SizeMap::place(const Shard& shard, std::uint64_t key) {
  return wire::gpu_mix(key) & (shard.capacity - 1);
}

// The index of the key, or where it would be inserted.
std::size_t SizeMap::find_in(const Shard& shard, std::uint64_t key) {
  std::size_t at = place(shard, key);
  while (shard.entries[at].key != 0 && shard.entries[at].key != key) {
    at = (at + 1) & (shard.capacity - 1);
  }
  return at;
}

// Null: the key is not there.
SizeMap::Entry* SizeMap::entry_of(const Shard& shard, std::uint64_t key) {
  Entry* const entry = shard.capacity == 0 ? nullptr : &shard.entries[find_in(shard, key)];
  return entry != nullptr && entry->key == key ? entry : nullptr;
}

bool SizeMap::grow(Shard& shard) {
  constexpr std::size_t kFirst = 128;
  Shard larger;
  larger.capacity = shard.capacity == 0 ? kFirst : 2 * shard.capacity;
  void* memory = mmap(nullptr, larger.capacity * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  larger.entries = static_cast<Entry*>(memory);
  for (std::size_t i = 0; i < shard.capacity; ++i) {
    const Entry& entry = shard.entries[i];
    if (entry.key != 0) larger.entries[find_in(larger, entry.key)] = entry;
  }
  if (shard.entries != nullptr) munmap(shard.entries, shard.capacity * sizeof(Entry));
  shard.entries = larger.entries;
  shard.capacity = larger.capacity;
  return true;
}

bool SizeMap::insert(std::uint64_t key, const SizeMapValue& value, SizeMapValue* replaced) {
  if (key == 0) return false;
  Shard& shard = shard_of(key);
  shard.lock.lock();
  // At most three quarters full, so that searches are short.
  const bool fits = 4 * (shard.used + 1) <= 3 * shard.capacity || grow(shard);
  if (fits) {
    Entry& entry = shard.entries[find_in(shard, key)];
    if (entry.key == 0) {
      ++shard.used;
    } else if (replaced != nullptr) {
      *replaced = entry.value;
    }
    entry = {key, value};
  }
  shard.lock.unlock();
  return fits;
}

bool SizeMap::find(std::uint64_t key, SizeMapValue& value) {
  if (key == 0) return false;
  Shard& shard = shard_of(key);
  shard.lock.lock();
  const Entry* const entry = entry_of(shard, key);
  if (entry != nullptr) value = entry->value;
  shard.lock.unlock();
  return entry != nullptr;
}

void SizeMap::remove(Shard& shard, std::size_t hole) {
  --shard.used;
  // Moves the following entries up unless they are at their home position.
  const std::size_t mask = shard.capacity - 1;
  for (std::size_t at = (hole + 1) & mask; shard.entries[at].key != 0; at = (at + 1) & mask) {
    const std::size_t home = place(shard, shard.entries[at].key);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    shard.entries[hole] = shard.entries[at];
    hole = at;
  }
  shard.entries[hole].key = 0;
}

bool SizeMap::take(std::uint64_t key, SizeMapValue& value) {
  if (key == 0) return false;
  Shard& shard = shard_of(key);
  shard.lock.lock();
  Entry* const entry = entry_of(shard, key);
  if (entry != nullptr) {
    value = entry->value;
    remove(shard, static_cast<std::size_t>(entry - shard.entries));
  }
  shard.lock.unlock();
  return entry != nullptr;
}

bool SizeMap::add(std::uint64_t key, int to_second, SizeMapValue& value) {
  if (key == 0) return false;
  Shard& shard = shard_of(key);
  shard.lock.lock();
  Entry* const entry = entry_of(shard, key);
  if (entry != nullptr) {
    entry->value.second += static_cast<std::uint32_t>(to_second);
    value = entry->value;
    if (value.second == 0) remove(shard, static_cast<std::size_t>(entry - shard.entries));
  }
  shard.lock.unlock();
  return entry != nullptr;
}

void SizeMap::forget() {
  for (Shard& shard : shards_) {
    shard.lock.reset();
    shard.entries = nullptr;
    shard.capacity = 0;
    shard.used = 0;
  }
}

}  // namespace assay::gpu
