#include "train/expert_load.h"

#include <gtest/gtest.h>

namespace assay::train {
namespace {

TEST(ExpertLoad, EvenIsOneOfEverything) {
  const std::vector<float> loads(12, 7.0F);
  const ExpertLoad load = expert_load(loads, 4);
  EXPECT_DOUBLE_EQ(load.largest, 1);
  EXPECT_NEAR(load.entropy, 1, 1e-12);
  for (const double share : load.share) EXPECT_DOUBLE_EQ(share, 0.25);
}

TEST(ExpertLoad, OneExpertTakesAll) {
  const std::vector<float> loads = {0, 8, 0, 0};
  const ExpertLoad load = expert_load(loads, 4);
  EXPECT_DOUBLE_EQ(load.largest, 4);
  EXPECT_DOUBLE_EQ(load.entropy, 0);
  EXPECT_EQ(load.share, (std::vector<double>{0, 1, 0, 0}));
}

TEST(ExpertLoad, TheWorstMixtureCountsAndEntropyIsTheMean) {
  const std::vector<float> loads = {4, 4, 8, 0};
  const ExpertLoad load = expert_load(loads, 2);
  EXPECT_DOUBLE_EQ(load.largest, 2);
  EXPECT_NEAR(load.entropy, 0.5, 1e-12);
  EXPECT_EQ(load.share, (std::vector<double>{0.75, 0.25}));
}

TEST(ExpertLoad, ASingleExpertIsAlwaysEven) {
  const std::vector<float> loads = {5};
  EXPECT_DOUBLE_EQ(expert_load(loads, 1).entropy, 1);
  EXPECT_DOUBLE_EQ(expert_load(loads, 1).largest, 1);
}

}  // namespace
}  // namespace assay::train
