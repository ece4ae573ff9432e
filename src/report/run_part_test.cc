// Parts of runs: what was not predicted or measured is not drawn, and no extreme hides the rest.
#include "report/run_part.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "plot/testing/xml.h"
#include "report/run_exports.h"

#include "report/markdown.h"
#include "report/testing/sample_run.h"

namespace assay::report {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::sample_run;

Chart chart_named(const PagePart& part, std::string_view name) {
  for (const Section& section : part.sections) {
    for (const Block& block : section.blocks) {
      const auto* chart = std::get_if<Chart>(&block);
      if (chart != nullptr && chart->name == name) return *chart;
    }
  }
  ADD_FAILURE() << name;
  return {};
}

store::MetricSeries& metric(ReportedRun& run, std::string_view name) {
  for (store::MetricSeries& series : run.metrics) {
    if (series.name == name) return series;
  }
  ADD_FAILURE() << name;
  return run.metrics.front();
}

TEST(RunPart, WhatIsNotPredictedIsNeitherDrawnNorANumber) {
  ReportedRun run = sample_run(40);
  EXPECT_THAT(chart_named(run_part(run), "throughput").wide.svg(), HasSubstr("predicted"));
  run.predicted = Predicted{.of = "demo on CPUs", .memory_bytes = 9e9};
  const PagePart part = run_part(run);
  EXPECT_THAT(chart_named(part, "throughput").wide.svg(), Not(HasSubstr("predicted")));
  for (const char* key : {"tokens_per_s", "step_s", "step_low_s", "step_high_s", "mfu", "mfu_6n"}) {
    EXPECT_TRUE(part.data.at("predicted").at(key).is_null()) << key;
  }
  EXPECT_EQ(part.data.at("predicted").at("memory_bytes"), 9e9);
}

TEST(RunPart, ARunningRunsTimeEndsAtTheReport) {
  ReportedRun run = sample_run(1);
  run.record.status = store::RunStatus::kRunning;
  run.record.duration_s = 0;
  run.metrics.clear();
  run.seen_unix_ns = run.record.started_unix_ns + 90'000'000'000;
  EXPECT_EQ(ran_s(run), 90);
  EXPECT_THAT(run_part(run).verdict.text, HasSubstr("for 1.50 min"));
  EXPECT_THAT(prometheus(run),
              HasSubstr("assay_run_ran_seconds{run=\"12\",uid=\"0123456789abcdef\","
                        "name=\"demo\"} 90\n"));
  run.seen_unix_ns = run.record.started_unix_ns - 5;  // another machine's clock
  EXPECT_EQ(ran_s(run), 0);
}

TEST(RunPart, WhenAnInterruptedRunEndedIsNotKnown) {
  ReportedRun run = sample_run(1);
  run.record.status = store::RunStatus::kInterrupted;
  run.record.duration_s = 90;
  run.metrics.clear();
  EXPECT_THAT(run_part(run).verdict.text, HasSubstr("after at least 1.50 min"));
}

TEST(RunPart, ShortTimesHaveNoExponent) {
  ReportedRun run = sample_run(1);
  run.metrics.clear();
  run.record.duration_s = 0.00586;
  const std::string text = markdown({.title = "t", .parts = {run_part(run)}});
  EXPECT_THAT(text, HasSubstr("| time | 5.86 ms |"));
  EXPECT_THAT(text, HasSubstr("| cost | less than \\$0.01 |"));
  EXPECT_THAT(text, Not(HasSubstr("e-0")));
}

// A compile step, as any run has one.
TEST(RunPart, OneSlowStepLeavesTheHistogramItsShape) {
  for (const std::int64_t steps : {30, 300, 100'000}) {
    ReportedRun run = sample_run(steps);
    metric(run, "seconds").points[0].value = 200;  // a thousand times the others
    const plot::Drawing drawing = chart_named(run_part(run), "step-times").wide;
    const std::string svg = drawing.svg();
    EXPECT_THAT(drawing.description(), HasSubstr("beyond the axis")) << steps;
    std::size_t bars = 0;
    for (const auto& element : plot::testing::elements_of(svg)) bars += element.has_class("bin");
    EXPECT_GE(bars, 5U) << steps;
    EXPECT_THAT(svg, HasSubstr("step 1<")) << steps;
    for (const char* name : {"p50", "p90"}) EXPECT_THAT(svg, HasSubstr(name)) << steps;
  }
}

// The p50 of the histogram is the median of the tables: of an even count, the mean of the middle.
TEST(RunPart, ThereIsOneMedian) {
  ReportedRun run = sample_run(4);
  const std::array<double, 4> seconds = {1, 2, 4, 5};
  for (std::size_t i = 0; i < 4; ++i) metric(run, "seconds").points[i].value = seconds.at(i);
  const PagePart part = run_part(run);
  EXPECT_THAT(chart_named(part, "step-times").wide.description(), HasSubstr("p50 3"));
  EXPECT_THAT(markdown({.title = "t", .parts = {part}}), HasSubstr("| step | 3.00 s |"));
}

// The manifest lists a checkpoint's files, but does not count as one.
TEST(RunPart, CheckpointsHaveTheFilesOfTheirManifest) {
  store::RunRecord record;
  for (const char* name : {"manifest.json", "weights.safetensors", "state.safetensors"}) {
    store::Output output;
    output.path = std::string("/p/run/checkpoints/step-3/") + name;
    output.size = 10;
    record.outputs.push_back(output);
  }
  const auto left = checkpoints_of(record);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].step, 3);
  EXPECT_EQ(left[0].files, 2);
  EXPECT_EQ(left[0].bytes, 20);
}

TEST(RunPart, AThroughputFarAboveAllOthersIsNamedNotDrawn) {
  ReportedRun run = sample_run(1000);
  metric(run, "tokens_per_s").points[76].value = 1e9;
  const Chart chart = chart_named(run_part(run), "throughput");
  EXPECT_EQ(
      chart.note,
      "measured: one value far above all others is not drawn, up to 1,000,000,000 tokens/s at "
      "step 77.");
  EXPECT_THAT(chart.wide.description(), Not(HasSubstr("000,000")));
  EXPECT_EQ(chart_named(run_part(sample_run(1000)), "throughput").note, "");
}

TEST(RunPart, ALossHasTheUnitThatItsProgramGaveIt) {
  ReportedRun run = sample_run(20);
  EXPECT_THAT(chart_named(run_part(run), "loss").wide.svg(), HasSubstr("loss, nats per token"));
  metric(run, "loss").unit = "bits per byte";
  EXPECT_THAT(chart_named(run_part(run), "loss").wide.svg(), HasSubstr("loss, bits per byte"));
  metric(run, "loss").unit = "";
  run.record.command = {"python", "train.py"};
  EXPECT_THAT(chart_named(run_part(run), "loss").wide.svg(), Not(HasSubstr("nats")));
}

}  // namespace
}  // namespace assay::report
