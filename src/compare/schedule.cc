#include "compare/schedule.h"

#include <algorithm>
#include <numeric>

#include "base/random_draws.h"

namespace assay::compare {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kStackStep = 16;  // the alignment of the stack

// Streams of one seed: even ones for orders, odd ones for paddings.
base::Draws draws_of(std::uint64_t seed, std::int64_t block, std::uint64_t use) {
  return base::Draws(seed, 2 * static_cast<std::uint64_t>(block) + use);
}

std::size_t size_of(std::span<const std::string> strings) {
  std::size_t size = 0;
  for (const std::string& text : strings) size += text.size() + 1 + sizeof(char*);
  return size;
}

}  // namespace

std::vector<std::size_t> order_of_block(std::uint64_t seed, std::int64_t block, std::size_t arms) {
  base::Draws draws = draws_of(seed, block, 0);
  std::vector<std::size_t> order(arms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = arms; left > 1; --left)
    std::swap(order[left - 1], order[draws.below(left)]);
  return order;
}

std::size_t start_size(std::span<const std::string> arguments,
                       std::span<const std::string> environment) {
  return size_of(arguments) + size_of(environment);
}

std::vector<std::string> paddings(std::span<const std::size_t> sizes, std::uint64_t seed,
                                  std::int64_t block) {
  base::Draws draws = draws_of(seed, block, 1);
  const std::size_t extra = kStackStep * draws.below(kPage / kStackStep);
  const std::size_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> pads;
  for (const std::size_t size : sizes) {
    pads.push_back(std::string(kPadVariable) + "=" + std::string(largest - size + extra, 'x'));
  }
  return pads;
}

}  // namespace assay::compare
