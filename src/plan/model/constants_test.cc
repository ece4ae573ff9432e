#include "plan/model/constants.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::plan {
namespace {

template <class Table>
void expect_inside_bounds(const Table& table) {
  std::set<std::string_view> names;
  for (const auto& info : table) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_LT(info.low, info.high) << info.name;
    EXPECT_TRUE(info.low <= info.prior && info.prior <= info.high) << info.name;
    EXPECT_TRUE(info.low <= info.shipped && info.shipped <= info.high) << info.name;
    EXPECT_FALSE(info.meaning.empty()) << info.name;
  }
}

TEST(ConstantTable, EachIsNamedOnceAndInsideItsBounds) {
  expect_inside_bounds(constant_table());
  expect_inside_bounds(memory_constant_table());
}

// A member that the table forgets would be zero.
TEST(ConstantTable, EveryMemberIsInTheTable) {
  EXPECT_EQ(constant_table().size() * sizeof(double), sizeof(Constants));
  EXPECT_EQ(memory_constant_table().size() * sizeof(double), sizeof(MemoryConstants));
  for (const ConstantInfo& info : constant_table()) {
    EXPECT_EQ(shipped_constants().*info.value, info.shipped) << info.name;
    EXPECT_EQ(prior_constants().*info.value, info.prior) << info.name;
    if (!info.fitted && !info.own) {
      EXPECT_EQ(info.shipped, info.prior) << info.name;
    }
    EXPECT_FALSE(info.source.empty()) << info.name;
  }
}

}  // namespace
}  // namespace assay::plan
