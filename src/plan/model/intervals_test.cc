#include "plan/model/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Seen seen_of_fused() {
  Seen seen;
  seen.ranges[static_cast<std::size_t>(SoftwareClass::kFused)] = {.parameters = {1e9, 405e9},
                                                                  .ranks = {8, 3072},
                                                                  .sequence = {2048, 8192},
                                                                  .card_flops = {312e12, 989e12},
                                                                  .local_experts = {1, 16}};
  for (auto& kind : seen.projects)
    for (auto& cell : kind) cell = {5, 5, 5};
  return seen;
}

Work fused_work() {
  Work work;
  work.shape.parameters = 8e9;
  work.degrees.ranks = 64;
  work.batch.sequence = 4096;
  work.card.bf16_flops = base::FlopsPerSecond(989e12);
  return work;
}

TEST(Extrapolations, NoneWithinWhatRowsHave) {
  EXPECT_THAT(extrapolations(fused_work(), seen_of_fused()), IsEmpty());
}

TEST(Extrapolations, NameWhatIsBeyondAndBelow) {
  Work work = fused_work();
  work.degrees.ranks = 16'384;
  EXPECT_THAT(extrapolations(work, seen_of_fused()),
              ElementsAre("16,384 ranks; the largest comparable row has 3,072"));
  work = fused_work();
  work.degrees.ranks = 1;
  work.shape.parameters = 671e9;
  work.batch.sequence = 131'072;
  work.card.bf16_flops = base::FlopsPerSecond(2250e12);
  EXPECT_THAT(extrapolations(work, seen_of_fused()),
              ElementsAre("671B parameters; the largest comparable row has 405B",
                          "1 rank; the smallest comparable row has 8",
                          "131,072 tokens in a sequence; the largest comparable row has 8,192",
                          "2.25 PFLOP/s of a card; the largest comparable row has 989 TFLOP/s"));
}

TEST(Extrapolations, ClassWithoutRowsHasNothingToCompare) {
  Work work = fused_work();
  work.shape.experts = 8;
  EXPECT_THAT(extrapolations(work, seen_of_fused()), ElementsAre("no comparable row: none is moe"));
}

TEST(Extrapolations, SayHowFewProjectsMeasuredTheLike) {
  Seen seen = seen_of_fused();
  Work work = fused_work();
  work.fp8 = true;
  auto& cell = seen.projects[0][static_cast<std::size_t>(Generation::kHopper)];
  cell = {5, 0, 0};
  EXPECT_THAT(extrapolations(work, seen),
              ElementsAre("no dense model was measured on Hopper in fp8: wide"));
  cell = {5, 1, 0};
  EXPECT_THAT(
      extrapolations(work, seen),
      ElementsAre("a dense model was measured on Hopper in fp8 by one project only: wider"));
}

// Of which no row is, or none like this one.
TEST(Extrapolations, SayWhatWasNotMeasuredOfTheFramework) {
  Seen seen = seen_of_fused();
  Work work = fused_work();
  work.software.framework = Framework::kTorchCompiled;
  EXPECT_THAT(extrapolations(work, seen),
              ElementsAre("no measured step is of torch-compiled: wider"));
  auto& cases = seen.software[static_cast<std::size_t>(Framework::kTorchCompiled)];
  cases = seen_case(false, Generation::kHopper, SeenPrecision::kHalf);
  EXPECT_THAT(extrapolations(work, seen), IsEmpty());
  work.fp8 = true;
  EXPECT_THAT(
      extrapolations(work, seen),
      ElementsAre("no measured step of torch-compiled is of a dense model on Hopper in fp8: "
                  "wider"));
  // Our trainer was measured on Hopper by ourselves.
  work.software.framework = Framework::kAssay;
  EXPECT_THAT(extrapolations(work, seen), IsEmpty());
  work.card.generation = Generation::kAmpere;
  EXPECT_THAT(extrapolations(work, seen),
              ElementsAre("no measured step of assay is of a dense model on Ampere in fp8: wider"));
}

TEST(Extrapolations, SayWhenARankHasMoreExpertsThanAnyDid) {
  Seen seen = seen_of_fused();
  seen.ranges[static_cast<std::size_t>(SoftwareClass::kMoe)] =
      seen.ranges[static_cast<std::size_t>(SoftwareClass::kFused)];
  Work work = fused_work();
  work.shape.experts = 128;
  work.degrees.ep = 2;
  EXPECT_THAT(extrapolations(work, seen),
              ElementsAre("64 experts on a rank; the largest comparable row has 16"));
}

// What is more efficient than all that was measured is said, and may be as slow as that.
TEST(IntervalOf, ReachesTheMostThatWasMeasured) {
  IntervalTable table;
  for (ErrorInterval& one : table.by_class) one = {.low = 0.9, .high = 1.2};
  Seen seen = seen_of_fused();
  seen.most_mfu[static_cast<std::size_t>(Generation::kHopper)][0] = 0.7;
  const Work work = fused_work();
  EXPECT_THAT(extrapolations(work, seen, 0.7), IsEmpty());
  EXPECT_THAT(extrapolations(work, seen, 0.84),
              ElementsAre("MFU of 84 %; above everything measured on Hopper in bf16: 70 %"));
  const ErrorInterval usual = interval_of(work, table, seen, false, 0.7);
  const ErrorInterval above = interval_of(work, table, seen, false, 0.84);
  EXPECT_EQ(above.low, usual.low);
  EXPECT_NEAR(above.high, usual.high * 0.84 / 0.7, 1e-12);
}

TEST(IntervalOf, IsWiderForWhatIsUnlikeAndWhatWasAssumed) {
  IntervalTable table;
  for (ErrorInterval& one : table.by_class) one = {.low = 0.9, .high = 1.2};
  Seen seen = seen_of_fused();
  const Work work = fused_work();
  const auto width = [&](bool assumed) {
    const ErrorInterval interval = interval_of(work, table, seen, assumed);
    return std::log(interval.high / interval.low);
  };
  const double seen_by_many = width(false);
  EXPECT_NEAR(seen_by_many, std::log(1.2 / 0.9), 1e-12);
  EXPECT_GT(width(true), seen_by_many);
  seen.projects[0][static_cast<std::size_t>(Generation::kHopper)][0] = 1;
  const double seen_by_one = width(false);
  EXPECT_GT(seen_by_one, seen_by_many);
  seen.projects[0][static_cast<std::size_t>(Generation::kHopper)][0] = 0;
  const double unseen = width(false);
  EXPECT_GT(unseen, seen_by_one);
  seen.ranges[static_cast<std::size_t>(SoftwareClass::kFused)].ranks.high = 32;
  EXPECT_GT(width(false), unseen);
}

TEST(ShippedIntervals, HoldThePrediction) {
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    const auto kind = static_cast<SoftwareClass>(c);
    const ErrorInterval interval = shipped_intervals().of(kind);
    EXPECT_LT(interval.low, 1) << to_text(kind);
    EXPECT_GT(interval.high, 1) << to_text(kind);
    EXPECT_GT(interval.rows, 0) << to_text(kind);
    EXPECT_GT(interval.projects, 1) << to_text(kind);
  }
}

}  // namespace
}  // namespace assay::plan
