// The closed form of a pipeline's time against schedules that are played.
#include "plan/model/pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plan/testing/pipelines.h"

namespace assay::plan {
namespace {

using testing::play_pipeline;
using testing::PlayedPipeline;
using testing::PlayedSchedule;

PlayedPipeline any_pipeline(PlayedSchedule schedule) {
  PlayedPipeline p{.schedule = schedule};
  p.stages = *rc::gen::inRange(2, 8);
  p.chunks = schedule == PlayedSchedule::kInterleaved ? *rc::gen::inRange(2, 6) : 1;
  p.micros = *rc::gen::inRange(1, 30);
  p.forward = *rc::gen::inRange(1, 20) / 10.0;
  p.backward = *rc::gen::inRange(1, 40) / 10.0;
  return p;
}

double chunk_seconds(const PlayedPipeline& p) {
  return p.forward + p.backward + p.weights;
}

double head_seconds(const PlayedPipeline& p) {
  return p.head_forward + p.head_backward;
}

double by_closed_form(const PlayedPipeline& p) {
  const double stage = p.chunks * chunk_seconds(p);
  return pipeline_seconds({.stages = static_cast<double>(p.stages),
                           .chunks = static_cast<double>(p.chunks),
                           .micros = static_cast<double>(p.micros),
                           .slowest = stage + head_seconds(p),
                           .whole = p.stages * stage + head_seconds(p),
                           .weights = p.weights});
}

// The longest that follows from what needs what: one micro-batch through the whole model, and
// everything that the last stage does, after the first chunk has come to it and before the last one
// has gone back.
double critical_path(const PlayedPipeline& p) {
  const double one = p.stages * p.chunks * chunk_seconds(p) + head_seconds(p);
  const double last = p.micros * (p.chunks * chunk_seconds(p) + head_seconds(p)) +
                      (p.stages - 1) * chunk_seconds(p);
  return std::max(one, last);
}

void expect_played(const PlayedPipeline& p) {
  const std::optional<double> played = play_pipeline(p);
  RC_ASSERT(played.has_value());
  RC_ASSERT(std::abs(by_closed_form(p) - *played) <= 1e-9 * *played);
}

RC_GTEST_PROP(PipelineProperty, OfOneChunkIsWhatIsPlayed, ()) {
  PlayedPipeline p = any_pipeline(
      *rc::gen::element(PlayedSchedule::kGpipe, PlayedSchedule::kOneForwardOneBackward));
  p.head_forward = *rc::gen::inRange(0, 20) / 10.0;
  p.head_backward = *rc::gen::inRange(0, 20) / 10.0;
  expect_played(p);
}

// Of full groups, or of one that is not full.
RC_GTEST_PROP(PipelineProperty, OfChunksIsWhatIsPlayed, ()) {
  PlayedPipeline p = any_pipeline(PlayedSchedule::kInterleaved);
  if (p.micros > p.stages) p.micros = p.micros / p.stages * p.stages;
  expect_played(p);
}

// Gradients of weights take no longer than either of the other passes: they are products alone.
RC_GTEST_PROP(PipelineProperty, OfZeroBubbleIsWhatIsPlayed, ()) {
  PlayedPipeline p = any_pipeline(PlayedSchedule::kZeroBubbleH1);
  p.weights = std::min(p.forward, p.backward) * (*rc::gen::inRange(1, 11) / 10.0);
  p.head_forward = *rc::gen::inRange(0, 20) / 10.0;
  p.head_backward = *rc::gen::inRange(0, 20) / 10.0;
  expect_played(p);
}

TEST(Pipeline, ZeroBubbleWaitsAThirdAsLong) {
  Pipeline p{.stages = 8, .micros = 32, .slowest = 3, .whole = 24};
  EXPECT_DOUBLE_EQ(pipeline_seconds(p), 3 * 32 + 3 * 7);
  p.weights = 1;
  EXPECT_DOUBLE_EQ(pipeline_seconds(p), 3 * 32 + 7);
}

RC_GTEST_PROP(PipelineProperty, NeverBeatsTheCriticalPath, ()) {
  PlayedPipeline p =
      any_pipeline(*rc::gen::element(PlayedSchedule::kGpipe, PlayedSchedule::kOneForwardOneBackward,
                                     PlayedSchedule::kInterleaved));
  p.head_forward = *rc::gen::inRange(0, 20) / 10.0;
  p.head_backward = *rc::gen::inRange(0, 20) / 10.0;
  RC_ASSERT(by_closed_form(p) >= critical_path(p) * (1 - 1e-12));
}

// One micro-batch has nothing to interleave with.
TEST(Pipeline, ChunksDoNotHelpASingleMicroBatch) {
  Pipeline p{.stages = 16, .chunks = 1, .micros = 1, .slowest = 1, .whole = 16};
  EXPECT_DOUBLE_EQ(pipeline_seconds(p), 16);
  p.chunks = 5;
  EXPECT_DOUBLE_EQ(pipeline_seconds(p), 16);
  p.micros = 16;
  EXPECT_DOUBLE_EQ(pipeline_seconds(p), 16 + 15 / 5.0);
}

}  // namespace
}  // namespace assay::plan
