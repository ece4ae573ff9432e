// A Feistel network permutes a domain of a power of four that is at least `size`: each round xors a
// function of one half into the other, which is invertible for any function. A value outside `size`
// is permuted again until it is inside (cycle walking), which is still a permutation.
#include "train/data/window_order.h"

#include <bit>

#include "train/data/mix.h"

namespace assay::data {
namespace {

// Three suffice for a pseudo-random permutation; small sizes need more.
constexpr std::uint64_t kRounds = 6;
// Smaller networks have too few permutations.
constexpr unsigned kLeastHalfBits = 3;

unsigned half_bits_for(std::uint64_t size) {
  const auto bits = static_cast<unsigned>(std::bit_width(size - 1));
  return bits < 2 * kLeastHalfBits ? kLeastHalfBits : (bits + 1) / 2;
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t size, std::uint64_t key)
    : size_(size), key_(key), half_bits_(half_bits_for(size)) {}

std::uint64_t KeyedPermutation::scrambled(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t mixed = mix(key_ + round, right) & mask;
    const std::uint64_t was_left = left;
    left = right;
    right = was_left ^ mixed;
  }
  return left << half_bits_ | right;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  do index = scrambled(index);
  while (index >= size_);
  return index;
}

std::uint64_t WindowOrder::window_at(std::uint64_t cursor) const {
  const std::uint64_t key = mix(seed_, epoch_of(cursor));
  return KeyedPermutation(windows_, key)(cursor % windows_);
}

}  // namespace assay::data
