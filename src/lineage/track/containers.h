// Compact containers for the tracker's tables of a million files. Ids are positions; 0 means
// "none".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/random_draws.h"

namespace assay::lineage {

// A list that grows in chunks, so it never moves its elements or needs twice its memory to grow.
// Element 0 is a placeholder.
template <class T>
class Chunks {
 public:
  Chunks() { add({}); }

  std::uint32_t add(const T& value) {
    if (size_ % kPerChunk == 0) chunks_.push_back(std::make_unique<T[]>(kPerChunk));
    chunks_.back()[size_ % kPerChunk] = value;
    return size_++;
  }
  T& operator[](std::uint32_t id) { return chunks_[id / kPerChunk][id % kPerChunk]; }
  const T& operator[](std::uint32_t id) const { return chunks_[id / kPerChunk][id % kPerChunk]; }
  // One more than the last id.
  [[nodiscard]] std::uint32_t end() const { return size_; }

 private:
  static constexpr std::uint32_t kPerChunk = 1024;

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::uint32_t size_ = 0;
};

inline std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) {
  return base::mixed_bits(std::hash<std::string_view>{}(text) + seed * 0x9E37'79B9'7F4A'7C15);
}

// A hash table of ids whose keys are stored elsewhere, four bytes a slot. The owner supplies the
// comparison and, for growing, the hash of a stored id.
class IdIndex {
 public:
  // The id for which `same(id)` holds, or 0.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Same same) const {
    if (slots_.empty()) return 0;
    for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
      if (slots_[at] == 0 || same(slots_[at])) return slots_[at];
    }
  }

  // Neither `id` nor its key may be in the table.
  template <class HashOfId>
  void insert(std::uint64_t hash, std::uint32_t id, HashOfId hash_of_id) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow(hash_of_id);
    place(hash, id);
    ++count_;
  }

  // Replaces `from`, which is in the table, by `to`, which has the same key.
  void replace(std::uint64_t hash, std::uint32_t from, std::uint32_t to) {
    for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
      if (slots_[at] != from) continue;
      slots_[at] = to;
      return;
    }
  }

 private:
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  void place(std::uint64_t hash, std::uint32_t id) {
    std::size_t at = hash & mask();
    while (slots_[at] != 0) at = (at + 1) & mask();
    slots_[at] = id;
  }

  template <class HashOfId>
  void grow(HashOfId hash_of_id) {
    std::vector<std::uint32_t> before(slots_.empty() ? 64 : slots_.size() * 2);
    before.swap(slots_);
    for (const std::uint32_t id : before) {
      if (id != 0) place(hash_of_id(id), id);
    }
  }

  std::vector<std::uint32_t> slots_;  // their number is a power of two; 0: free
  std::size_t count_ = 0;
};

// File names, stored contiguously, never moved or freed. The number that add() returns identifies a
// name.
class NameArena {
 public:
  // Names are cut at kLongest bytes; file systems allow 255.
  static constexpr std::size_t kLongest = 4096;

  std::uint32_t add(std::string_view name);
  [[nodiscard]] std::string_view operator[](std::uint32_t at) const;
  // Terminated by NUL; valid as long as the arena.
  [[nodiscard]] const char* text(std::uint32_t at) const { return (*this)[at].data(); }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10U;

  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t used_ = kChunkBytes;  // of the last chunk
};

}  // namespace assay::lineage
