#include "plan/model/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RangeTable seen_of_fused() {
  RangeTable table;
  table[static_cast<std::size_t>(SoftwareClass::kFused)] = {.parameters = {1e9, 405e9},
                                                            .ranks = {8, 3072},
                                                            .sequence = {2048, 8192},
                                                            .card_flops = {312e12, 989e12}};
  return table;
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

TEST(ShippedIntervals, HoldThePredictionAndAreWiderForUnknownSources) {
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    const auto kind = static_cast<SoftwareClass>(c);
    const ErrorInterval known = shipped_intervals(true).of(kind);
    const ErrorInterval unknown = shipped_intervals(false).of(kind);
    for (const ErrorInterval& interval : {known, unknown}) {
      EXPECT_LT(interval.low, 1) << to_text(kind);
      EXPECT_GT(interval.high, 1) << to_text(kind);
      EXPECT_GT(interval.rows, 0) << to_text(kind);
    }
    EXPECT_GT(unknown.high / unknown.low, known.high / known.low) << to_text(kind);
  }
}

}  // namespace
}  // namespace assay::plan
