#include "spec/job.h"

#include <gtest/gtest.h>

namespace assay::spec {
namespace {

TEST(DataMix, IsPathsAndWeights) {
  const auto parts = parse_mix(" web = 0.7,a=b/code.tokens=3e-1 ");
  ASSERT_TRUE(parts) << parts.error().line();
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].path, "web");
  EXPECT_EQ((*parts)[0].weight, 0.7);
  EXPECT_EQ((*parts)[1].path, "a=b/code.tokens");
  EXPECT_EQ((*parts)[1].weight, 0.3);
}

TEST(DataMix, RefusesWhatIsNoWeight) {
  for (const char* text : {"", "web", "web=", "=1", "web=0", "web=-1", "web=nan", "web=1,",
                           "web=1 x", "web=inf", ",web=1"}) {
    EXPECT_FALSE(parse_mix(text)) << text;
  }
  EXPECT_EQ(parse_mix("web=0.5, code").error().what,
            "'code' is not a path, '=' and a positive weight");
}

}  // namespace
}  // namespace assay::spec
