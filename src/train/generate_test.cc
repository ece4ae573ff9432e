// How a token is drawn: by temperature, and only from the most likely ones.
#include "train/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace assay::train {
namespace {

// How often each of four tokens with these probabilities is drawn.
std::map<std::int32_t, int> drawn(const SamplingOptions& options) {
  std::map<std::int32_t, int> counts;
  constexpr std::uint32_t kDraws = 4096;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    std::vector<float> logits;
    for (const double p : {0.1, 0.5, 0.15, 0.25}) logits.push_back(static_cast<float>(std::log(p)));
    ++counts[choose(logits, options, i * ((1U << 31U) / (kDraws / 2)))];
  }
  return counts;
}

TEST(Generate, DrawsByProbability) {
  const auto counts = drawn({});
  EXPECT_NEAR(counts.at(0), 410, 2);
  EXPECT_NEAR(counts.at(1), 2048, 2);
  EXPECT_NEAR(counts.at(2), 614, 2);
  EXPECT_NEAR(counts.at(3), 1024, 2);
}

TEST(Generate, TemperatureSharpensAndNoneTakesTheMostLikely) {
  EXPECT_EQ(drawn({.temperature = 0}).at(1), 4096);
  // Squares of probabilities: 0.25 of 0.345.
  EXPECT_NEAR(drawn({.temperature = 0.5}).at(1), 4096 * 0.25 / 0.345, 2);
}

TEST(Generate, DrawsFromTheMostLikelyAlone) {
  const auto counts = drawn({.top_p = 0.7});  // 0.5 and 0.25
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts.at(1), 4096 * 0.5 / 0.75, 2);
  EXPECT_NEAR(counts.at(3), 4096 * 0.25 / 0.75, 2);
  EXPECT_EQ(drawn({.top_p = 0.01}).at(1), 4096);
  EXPECT_EQ(drawn({.top_p = 0.8}).size(), 3U);
}

}  // namespace
}  // namespace assay::train
