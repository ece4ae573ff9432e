#include "train/data/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/testing/temp_dir.h"
#include "train/data/shard.h"

namespace assay::data {
namespace {

class SynthTest : public ::testing::Test {
 protected:
  std::vector<std::uint32_t> made(const SynthRequest& request) {
    SynthRequest here = request;
    here.output = directory_.path() / "s.tokens";
    const auto header = synthesize(here);
    EXPECT_TRUE(header) << header.error().line();
    const auto shard = Shard::open(here.output);
    EXPECT_TRUE(shard->verify());
    std::vector<std::uint32_t> tokens(shard->count());
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = shard->token(i);
    return tokens;
  }

  base::testing::TempDir directory_;
};

double entropy_of(const std::map<std::vector<std::uint32_t>, std::map<std::uint32_t, int>>& after) {
  double nats = 0;
  double all = 0;
  for (const auto& [context, counts] : after) {
    double total = 0;
    for (const auto& [token, count] : counts) total += count;
    for (const auto& [token, count] : counts) nats -= count * std::log(count / total);
    all += total;
  }
  return nats / all;
}

// The loss a model that sees `order` tokens could reach, counted from the tokens.
double loss_of_order(const std::vector<std::uint32_t>& tokens, std::size_t order) {
  std::map<std::vector<std::uint32_t>, std::map<std::uint32_t, int>> after;
  for (std::size_t i = order; i < tokens.size(); ++i) {
    const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    ++after[std::vector<std::uint32_t>(at - static_cast<std::ptrdiff_t>(order), at)][tokens[i]];
  }
  return entropy_of(after);
}

TEST_F(SynthTest, MarkovIsWorthLearning) {
  const auto tokens = made({.tokens = 200'000, .vocabulary = 128, .seed = 1});
  EXPECT_NEAR(loss_of_order(tokens, 0), std::log(128), 0.1);
  EXPECT_NEAR(loss_of_order(tokens, 1), 1.3, 0.1);
  EXPECT_NEAR(loss_of_order(tokens, 2), 1.0, 0.1);
}

TEST_F(SynthTest, UniformIsNot) {
  const auto tokens =
      made({.tokens = 100'000, .vocabulary = 64, .seed = 1, .kind = SynthKind::kUniform});
  EXPECT_NEAR(loss_of_order(tokens, 0), std::log(64), 0.01);
  EXPECT_NEAR(loss_of_order(tokens, 1), std::log(64), 0.05);
}

TEST_F(SynthTest, SeedsDifferAndShorterIsABeginning) {
  const auto tokens = made({.tokens = 1000, .vocabulary = 100, .seed = 1});
  EXPECT_NE(made({.tokens = 1000, .vocabulary = 100, .seed = 2}), tokens);
  auto shorter = made({.tokens = 500, .vocabulary = 100, .seed = 1});
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), tokens.begin()));
  EXPECT_EQ(made({.tokens = 10, .vocabulary = 1}), std::vector<std::uint32_t>(10, 0));
}

// Fixed values from an implementation in another language: the output must never change.
TEST_F(SynthTest, IsTheSameEverywhere) {
  EXPECT_EQ(made({.tokens = 6, .vocabulary = 1000, .seed = 7, .kind = SynthKind::kUniform}),
            (std::vector<std::uint32_t>{564, 957, 190, 363, 404, 882}));
  EXPECT_EQ(made({.tokens = 6, .vocabulary = 1000, .seed = 7}),
            (std::vector<std::uint32_t>{659, 262, 558, 592, 818, 340}));
}

TEST_F(SynthTest, RefusesVocabulariesOfNoSize) {
  EXPECT_EQ(synthesize({.output = "x"}).error().line(), "--vocab: 0 is not between 1 and 16777216");
}

}  // namespace
}  // namespace assay::data
