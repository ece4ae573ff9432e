// Initial weights drawn by a GPU have the bits of those that the host draws.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "train/cuda/testing/trial.h"
#include "train/float_bits.h"
#include "train/init.h"
#include "train/resume.h"
#include "train/threads.h"

namespace assay::train::cuda {
namespace {

using testing::gpu_backend;
using testing::Trial;

// One with tables of many millions of elements.
spec::ModelSpec with_large_tables() {
  spec::ModelSpec model = testing::variants().front().model;
  model.vocab = 131072;
  model.tied = false;
  return model;
}

step::Choices choices() {
  return {.numerics = step::numerics_of(spec::Precision::kBf16),
          .recompute = spec::Recompute::kNone,
          .head_rows = 128};
}

class CudaDraw : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  }
};

TEST_F(CudaDraw, GivesTheBitsOfTheHost) {
  Trial run(gpu_backend(), with_large_tables(), choices());
  Threads threads(usable_processors());
  std::int64_t compared = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    ASSERT_TRUE(initialise(run.backend(), run.program(), seed).has_value());
    for (const step::Parameter& p : run.program().parameters) {
      const step::View place = run.program().weight(p);
      step::View remainder = place;
      remainder.buffer = run.program().unit_of(p).remainders;
      const std::vector<std::uint16_t> high = run.bits(place);
      const std::vector<std::uint16_t> low = run.bits(remainder);
      std::atomic<std::int64_t> wrong = 0;
      threads.ranges(p.elements(), 1 << 16, [&](std::int64_t first, std::int64_t last) {
        std::vector<float> values(static_cast<std::size_t>(last - first));
        initial_values(p, seed, first, values);
        for (std::int64_t i = first; i < last; ++i) {
          const SplitMaster split = split_master(values[static_cast<std::size_t>(i - first)]);
          const auto at = static_cast<std::size_t>(i);
          if (high[at] != split.high || low[at] != split.low) ++wrong;
        }
      });
      EXPECT_EQ(wrong, 0) << p.name << ", seed " << seed;
      compared += p.elements();
    }
  }
  EXPECT_GT(compared, 100'000'000);
}

// A rank's part of a parameter: runs that begin anywhere, and low halves for some of them.
TEST_F(CudaDraw, GivesTheElementsOfRuns) {
  Trial run(gpu_backend(), testing::variants().front().model, choices());
  const step::Parameter& p = run.program().parameters.front();
  const step::View place = run.program().weight(p);
  constexpr std::int64_t kElements = 10 * 33 + 77;
  const step::View weight{place.buffer, place.offset, 1, kElements, kElements};
  const step::View low{run.program().unit_of(p).remainders, place.offset, 1, 200, 200};
  const InitialDraw draw{
      .parameter = p,
      .seed = 9,
      .pieces = {{.first = 3, .count = 330, .run = 33, .apart = 101}, {.first = 5001, .count = 77}},
      .weight = weight,
      .remainder = low,
      .remainder_at = 150};
  const auto drawn = run.backend().draw(draw);
  ASSERT_TRUE(drawn.has_value()) << drawn.error().line();
  ASSERT_TRUE(*drawn);
  const std::vector<std::uint16_t> high_bits = run.bits(weight);
  const std::vector<std::uint16_t> low_bits = run.bits(low);
  for (std::int64_t i = 0; i < kElements; ++i) {
    const std::int64_t element = i < 330 ? 3 + i / 33 * 101 + i % 33 : 5001 + i - 330;
    float value = 0;
    initial_values(p, 9, element, {&value, 1});
    EXPECT_EQ(high_bits[static_cast<std::size_t>(i)], split_master(value).high) << i;
    if (i < 150 || i >= 350) continue;
    EXPECT_EQ(low_bits[static_cast<std::size_t>(i - 150)], split_master(value).low) << i;
  }
}

}  // namespace
}  // namespace assay::train::cuda
