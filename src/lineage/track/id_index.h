// IdIndex: a hash table of ids whose keys live elsewhere, four bytes a slot. The owner brings the
// comparison and, for growing, the hash of an id it has stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::lineage {

// Spreads a number over all bits (the finaliser of SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58'476D'1CE4'E5B9;
  value = (value ^ (value >> 27U)) * 0x94D0'49BB'1331'11EB;
  return value ^ (value >> 31U);
}

inline std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) {
  return mixed(std::hash<std::string_view>{}(text) + seed * 0x9E37'79B9'7F4A'7C15);
}

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

  // `id` is not in the table yet, nor is its key.
  template <class HashOfId>
  void insert(std::uint64_t hash, std::uint32_t id, HashOfId hash_of_id) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow(hash_of_id);
    place(hash, id);
    ++count_;
  }

  // `to` has the key of `from`, which is in the table, and takes its place.
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

  std::vector<std::uint32_t> slots_;  // a power of two of them; 0: free
  std::size_t count_ = 0;
};

}  // namespace assay::lineage
