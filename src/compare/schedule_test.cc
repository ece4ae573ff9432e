#include "compare/schedule.h"

#include <gtest/gtest.h>

#include <map>

namespace assay::compare {
namespace {

TEST(Schedule, EveryOrderIsEquallyLikely) {
  std::map<std::vector<std::size_t>, int> seen;
  for (int block = 0; block < 6000; ++block) ++seen[order_of_block(7, block, 3)];
  ASSERT_EQ(seen.size(), 6U);
  // Six standard deviations of a count.
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 6 * std::sqrt(1000 * 5 / 6.0));
}

TEST(Schedule, NeighbouringBlocksDoNotFollowEachOther) {
  int same = 0;
  for (int block = 0; block < 6000; ++block) {
    same += order_of_block(7, block, 2) == order_of_block(7, block + 1, 2) ? 1 : 0;
  }
  EXPECT_NEAR(same, 3000, 6 * std::sqrt(1500.0));
}

TEST(Schedule, ASeedRepeats) {
  int other = 0;
  for (int block = 0; block < 100; ++block) {
    EXPECT_EQ(order_of_block(7, block, 4), order_of_block(7, block, 4));
    other += order_of_block(7, block, 4) != order_of_block(8, block, 4) ? 1 : 0;
  }
  EXPECT_GT(other, 80);
}

TEST(Schedule, PaddingMakesStartsEquallyLarge) {
  const std::vector<std::string> environment = {"A=1", "PATH=/bin"};
  const std::vector<std::string> longer = {"A=1", "PATH=/bin", "LD_PRELOAD=/x/y.so"};
  const std::vector<std::string> arguments = {"/bin/true", "x"};
  const std::vector<std::size_t> sizes = {start_size(arguments, environment),
                                          start_size(arguments, longer),
                                          start_size({}, environment)};
  EXPECT_EQ(sizes[0], 4 + 10 + 10 + 2 + 4 * 8);
  std::map<std::size_t, int> lengths;
  for (int block = 0; block < 500; ++block) {
    const auto pads = paddings(sizes, 3, block);
    EXPECT_EQ(sizes[0] + pads[0].size(), sizes[1] + pads[1].size());
    EXPECT_EQ(sizes[0] + pads[0].size(), sizes[2] + pads[2].size());
    ++lengths[pads[0].size()];
  }
  EXPECT_GT(lengths.size(), 200U);
}

}  // namespace
}  // namespace assay::compare
