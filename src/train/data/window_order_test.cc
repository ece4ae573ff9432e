#include "train/data/window_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace assay::data {
namespace {

std::vector<std::uint64_t> epoch_order(const WindowOrder& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> windows(order.windows());
  for (std::uint64_t i = 0; i < windows.size(); ++i) {
    windows[i] = order.window_at(epoch * order.windows() + i);
  }
  return windows;
}

bool is_permutation_of_all(std::vector<std::uint64_t> windows) {
  std::sort(windows.begin(), windows.end());
  for (std::uint64_t i = 0; i < windows.size(); ++i) {
    if (windows[i] != i) return false;
  }
  return true;
}

TEST(WindowOrder, EverySmallSizeIsAPermutationInEveryEpoch) {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    const WindowOrder order(size, size * 31);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      ASSERT_TRUE(is_permutation_of_all(epoch_order(order, epoch))) << size << " " << epoch;
    }
  }
}

TEST(WindowOrder, SizesAroundPowersOfTwoArePermutations) {
  for (std::uint64_t power = 256; power <= 65536; power *= 2) {
    for (const std::uint64_t size : {power - 1, power, power + 1}) {
      ASSERT_TRUE(is_permutation_of_all(epoch_order(WindowOrder(size, 7), 0))) << size;
    }
  }
}

RC_GTEST_PROP(WindowOrder, IsAPermutationThatEpochsAndSeedsChange, (std::uint64_t seed)) {
  const auto size = *rc::gen::inRange<std::uint64_t>(12, 3000);
  const auto epoch = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const WindowOrder order(size, seed);
  const auto windows = epoch_order(order, epoch);
  RC_ASSERT(is_permutation_of_all(windows));
  RC_ASSERT(windows != epoch_order(order, epoch + 1));
  RC_ASSERT(windows != epoch_order(WindowOrder(size, seed + 1), epoch));
  RC_ASSERT(windows == epoch_order(WindowOrder(size, seed), epoch));
}

TEST(WindowOrder, HugeSizesStayInsideAndDoNotRepeat) {
  const std::uint64_t size = (std::uint64_t{1} << 40) + 12345;
  const WindowOrder order(size, 1);
  std::vector<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 20000; ++i) seen.push_back(order.window_at(size - 10000 + i));
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), size);
  // Each half is one epoch, in which none repeats.
  for (auto half : {seen.begin(), seen.begin() + 10000}) {
    std::sort(half, half + 10000);
    EXPECT_EQ(std::adjacent_find(half, half + 10000), half + 10000);
  }
}

// A shuffle, not a shift: neighbours are far apart, and the mean distance is that of random pairs
// (a third of the size).
TEST(WindowOrder, NeighboursAreUnrelated) {
  const WindowOrder order(100'000, 3);
  const auto windows = epoch_order(order, 5);
  double distance = 0;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    distance += std::abs(static_cast<double>(windows[i]) - static_cast<double>(windows[i - 1]));
  }
  EXPECT_NEAR(distance / 1e5, 1e5 / 3, 1e3);
}

// Fixed values from an implementation in another language: a checkpoint's cursor must mean the same
// windows in every later release.
TEST(WindowOrder, IsTheSameForever) {
  const WindowOrder order(1000, 42);
  EXPECT_EQ((std::vector<std::uint64_t>{order.window_at(0), order.window_at(1),
                                        order.window_at(999), order.window_at(1000)}),
            (std::vector<std::uint64_t>{605, 144, 353, 705}));
}

}  // namespace
}  // namespace assay::data
