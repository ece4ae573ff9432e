// A failed check names its line; a passing one only evaluates its condition.
#include "base/check.h"

#include <gtest/gtest.h>

namespace assay::base {
namespace {

TEST(CheckDeathTest, NamesTheLineTheConditionAndItsMeaning) {
  EXPECT_DEATH(ASSAY_CHECK(1 + 1 == 3, "sums are right"),
               "assay: bug: .*check_test\\.cc:[0-9]+: sums are right "
               "\\(1 \\+ 1 == 3 does not hold\\); please report this line");
}

TEST(Check, EvaluatesItsConditionOnceAndPassesWhenItHolds) {
  int evaluated = 0;
  ASSAY_CHECK(++evaluated == 1, "evaluated once");
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace assay::base
