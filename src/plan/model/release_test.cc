#include "plan/model/release.h"

#include <gtest/gtest.h>

#include "plan/model/cards.h"

namespace assay::plan {
namespace {

Software released(Framework framework, const char* card_name, const Release& release,
                  bool mixture = true) {
  const Card card = *card_of(card_name);
  Software software = software_of(framework, card);
  add_release(release, mixture, card, software);
  return software;
}

TEST(Release, PermutationWasFusedBeforeQuantisation) {
  const auto early = [](double date, bool quantised) {
    return released(Framework::kMegatronCore, "H100-SXM5-80GB",
                    {.date = date, .quantised = quantised})
        .early_experts;
  };
  EXPECT_TRUE(early(2024.5, false));
  EXPECT_FALSE(early(2025.5, false));
  EXPECT_TRUE(early(2025.5, true));
  EXPECT_FALSE(early(2026.5, true));
}

TEST(Release, AnUnknownDateIsAnEarlyOne) {
  const Software software = released(Framework::kMegatronCore, "H100-SXM5-80GB", {});
  EXPECT_TRUE(software.early_experts);
  EXPECT_FALSE(software.sends_tokens_once);
  EXPECT_FALSE(software.first_year_kernels);
}

TEST(Release, TheNewestCapturesWholeIterationsOnBlackwell) {
  const Software software =
      released(Framework::kMegatronBridge, "GB200", {.date = kNewestRelease, .quantised = true});
  EXPECT_GT(software.graphed_experts, 0.5);
  EXPECT_TRUE(software.overlaps_experts);
  EXPECT_TRUE(software.sends_tokens_once);
  EXPECT_FALSE(software.early_experts);
  EXPECT_FALSE(software.first_year_kernels);
}

TEST(Release, OtherSoftwareAndDenseModelsHaveNoneOfIt) {
  EXPECT_TRUE(released(Framework::kTorchCompiled, "H100-SXM5-80GB", {.date = kNewestRelease})
                  .early_experts);
  EXPECT_FALSE(
      released(Framework::kAssay, "H100-SXM5-80GB", {.date = kNewestRelease}).early_experts);
  EXPECT_FALSE(released(Framework::kMegatronCore, "GB200", {.date = kNewestRelease}, false)
                   .overlaps_experts);
  EXPECT_TRUE(
      released(Framework::kMegatronCore, "GB200", {.date = 2025.0}, false).first_year_kernels);
}

}  // namespace
}  // namespace assay::plan
