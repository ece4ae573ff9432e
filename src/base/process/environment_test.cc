#include "base/process/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace assay::base {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Environment, IsThatOfThisProcess) {
  ::setenv("ASSAY_TEST_VARIABLE", "a=b", 1);
  const Environment here = Environment::from_current();
  ::unsetenv("ASSAY_TEST_VARIABLE");
  EXPECT_EQ(here.get("ASSAY_TEST_VARIABLE"), "a=b");
  EXPECT_EQ(Environment::from_current().get("ASSAY_TEST_VARIABLE"), std::nullopt);
}

TEST(Environment, SetsAndRemovesByWholeName) {
  Environment environment{"A=1", "AB=2", "A=3", "odd"};
  EXPECT_EQ(environment.get("A"), "1");
  EXPECT_EQ(environment.get("B"), std::nullopt);
  EXPECT_EQ(environment.get("odd"), std::nullopt);
  environment.set("A", "4");
  EXPECT_THAT(environment.entries(), ElementsAre("AB=2", "odd", "A=4"));
  environment.unset("AB");
  environment.unset("missing");
  EXPECT_THAT(environment.entries(), ElementsAre("odd", "A=4"));
  EXPECT_THAT(environment.values(), ElementsAre(Pair("A", "4")));
  EXPECT_THAT(Environment::from_values({{"B", "2"}, {"A", "1"}}).entries(),
              ElementsAre("A=1", "B=2"));
}

TEST(Environment, AddsToListsAtEitherEnd) {
  Environment environment{"L=a:b", "EMPTY="};
  environment.add_to_list("L", "c", Environment::Place::kLast);
  environment.add_to_list("L", "z", Environment::Place::kFirst);
  environment.add_to_list("EMPTY", "x", Environment::Place::kLast);
  environment.add_to_list("NEW", "y", Environment::Place::kFirst);
  EXPECT_THAT(environment.entries(), ElementsAre("L=z:a:b:c", "EMPTY=x", "NEW=y"));
}

TEST(Environment, IsPassedToExecAsPointersThatEndWithNull) {
  const Environment environment{"A=1", "B="};
  const std::vector<char*> pointers = environment.pointers();
  ASSERT_EQ(pointers.size(), 3U);
  EXPECT_STREQ(pointers[0], "A=1");
  EXPECT_STREQ(pointers[1], "B=");
  EXPECT_EQ(pointers[2], nullptr);
}

}  // namespace
}  // namespace assay::base
