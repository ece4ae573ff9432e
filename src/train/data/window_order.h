// WindowOrder: the order in which a run reads its windows. Each epoch is another shuffle of all of
// them, and any place in it is computed from its number alone.
//
// So a run's whole position is one number, the cursor: how many windows all ranks together have
// taken since the start. There is no list to keep, to store in a checkpoint, or to share between
// ranks.
#pragma once

#include <cstdint>

namespace assay::data {

// A permutation of 0 … size-1 chosen by `key`, one index at a time, in O(1) expected.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t size, std::uint64_t key);
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const;

 private:
  [[nodiscard]] std::uint64_t scrambled(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  unsigned half_bits_;  // values are two halves of this many bits
};

class WindowOrder {
 public:
  // `windows` is not 0.
  WindowOrder(std::uint64_t windows, std::uint64_t seed) : windows_(windows), seed_(seed) {}

  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  [[nodiscard]] std::uint64_t epoch_of(std::uint64_t cursor) const { return cursor / windows_; }
  // The window that is read at a place.
  [[nodiscard]] std::uint64_t window_at(std::uint64_t cursor) const;

 private:
  std::uint64_t windows_;
  std::uint64_t seed_;
};

}  // namespace assay::data
