#include "plan/calibrate/scores.h"

#include <gtest/gtest.h>

namespace assay::plan {
namespace {

Row scored_row(const std::string& source, double seconds) {
  return {.source = source, .step_s = seconds, .candidates = {Work{}}};
}

RowPrediction step_within(double seconds, double low, double high) {
  return {.step_s = seconds, .low = low, .high = high};
}

TEST(Score, CountsEachRowOnceAndSourcesApart) {
  const std::vector<Row> rows = {scored_row("a", 1), scored_row("b", 2), scored_row("a", 4)};
  const std::vector<RowPrediction> predictions = {step_within(1.1, 1, 2), step_within(1, 1.5, 2.5),
                                                  step_within(4.8, 4.1, 5)};
  const Score s = score(rows, predictions);
  EXPECT_EQ(s.time.rows, 3U);
  EXPECT_NEAR(s.time.mean, (0.1 + 0.5 + 0.2) / 3, 1e-12);
  EXPECT_NEAR(s.time.median, 0.2, 1e-12);
  EXPECT_NEAR(s.coverage, 2.0 / 3, 1e-12);
  ASSERT_EQ(s.sources.size(), 2U);
  EXPECT_EQ(s.sources[0].source, "a");
  EXPECT_NEAR(s.sources[0].time.median, 0.15, 1e-12);
  EXPECT_EQ(s.sources[1].time.rows, 1U);
}

TEST(Score, LeavesOutWhatIsNotMeasuredOrFlagged) {
  std::vector<Row> rows = {scored_row("a", 1), scored_row("a", 1), scored_row("a", 1)};
  rows[0].flagged = true;
  rows[1].step_s.reset();
  const std::vector<RowPrediction> predictions = {step_within(9, 0, 9), step_within(9, 0, 9),
                                                  RowPrediction{}};
  const Score s = score(rows, predictions);
  EXPECT_EQ(s.time.rows, 0U);
  EXPECT_EQ(s.coverage, 0);
  EXPECT_TRUE(s.sources.empty());
}

TEST(Score, MemoryIsScoredWhereItWasMeasured) {
  std::vector<Row> rows = {scored_row("a", 1), scored_row("a", 1)};
  rows[1].memory_gib = 50;
  std::vector<RowPrediction> predictions = {step_within(1, 1, 1), step_within(1, 1, 1)};
  predictions[0].memory_gib = 10;
  predictions[1].memory_gib = 40;
  const Score s = score(rows, predictions);
  EXPECT_EQ(s.memory.rows, 1U);
  EXPECT_NEAR(s.memory.mean, 0.2, 1e-12);
}

// Errors of 10 and 30 % in one project, 50 % in another: projects weigh the same.
TEST(Score, EveryProjectWeighsTheSame) {
  std::vector<Row> rows = {scored_row("a", 1), scored_row("a", 1), scored_row("b", 1),
                           scored_row("c", 1)};
  for (Row& row : rows) row.project = row.source;
  rows[3].candidates.front().shape.experts = 8;
  const std::vector<RowPrediction> predictions = {step_within(1.1, 1, 2), step_within(1.3, 1.2, 2),
                                                  step_within(1.5, 0.9, 2), step_within(2, 0, 9)};
  const Score s = score(rows, predictions);
  EXPECT_EQ(s.dense.projects, 2U);
  EXPECT_NEAR(s.dense.mean, (0.2 + 0.5) / 2, 1e-12);
  EXPECT_NEAR(s.dense.worst, 0.5, 1e-12);
  EXPECT_NEAR(s.dense.coverage, (0.5 + 1) / 2, 1e-12);
  EXPECT_EQ(s.mixtures.projects, 1U);
  EXPECT_NEAR(s.mixtures.mean, 1, 1e-12);
  ASSERT_EQ(s.projects.size(), 3U);
  EXPECT_NEAR(s.projects[0].time.worst, 0.3, 1e-12);
}

}  // namespace
}  // namespace assay::plan
