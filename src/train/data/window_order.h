// WindowOrder: the order in which a run reads its windows. Each epoch is a different shuffle, and
// the window at any index is computed directly.
//
// So a run's position in the data is one number, the cursor: how many windows all ranks together
// have read since the start. There is no list to keep, checkpoint or share between ranks.
#pragma once

#include <cstdint>

namespace assay::data {

// A permutation of 0 … size-1 selected by `key`; expected O(1) per index.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t size, std::uint64_t key);
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const;

 private:
  [[nodiscard]] std::uint64_t scrambled(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  unsigned half_bits_;  // a value is split into two halves of this many bits
};

class WindowOrder {
 public:
  // `windows` must not be 0.
  WindowOrder(std::uint64_t windows, std::uint64_t seed) : windows_(windows), seed_(seed) {}

  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  [[nodiscard]] std::uint64_t epoch_of(std::uint64_t cursor) const { return cursor / windows_; }
  // The window that is read at a cursor.
  [[nodiscard]] std::uint64_t window_at(std::uint64_t cursor) const;

 private:
  std::uint64_t windows_;
  std::uint64_t seed_;
};

}  // namespace assay::data
