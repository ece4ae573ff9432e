#include "compare/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::compare {
namespace {

using ::testing::HasSubstr;

double found(const char* metric, std::string_view output) {
  const auto value = value_in(*parse_metric(metric), output);
  EXPECT_TRUE(value) << value.error().line();
  return value.value_or(-1);
}

std::string missing(const char* metric, std::string_view output) {
  const auto value = value_in(*parse_metric(metric), output);
  return value ? "" : value.error().line();
}

TEST(ComparedMetric, IsWrittenAsItIsRead) {
  for (const char* text : {"wall", "cpu", "regex:a (b)", "json:a.b", "stored:seconds"}) {
    const auto metric = parse_metric(text);
    ASSERT_TRUE(metric) << text;
    EXPECT_EQ(metric->text(), text);
  }
  for (const char* text : {"", "wal", "regex:", "json:", "regex:(", "regex:[", "wall:x"}) {
    EXPECT_FALSE(parse_metric(text)) << text;
  }
}

TEST(ComparedMetric, TheLastMatchCounts) {
  EXPECT_EQ(found("regex:dt ([0-9.]+)", "dt 1.5\nx\ndt 2.5 dt 3\nend"), 3);
  EXPECT_EQ(found("regex:[0-9]+", "7 8 9"), 9);
  EXPECT_EQ(found("regex:t=(\\S+)", "t=-1.5e-3"), -1.5e-3);
  EXPECT_EQ(found("regex:t=(\\S+)", "t=+2"), 2);
  EXPECT_THAT(missing("regex:x*", "1\n"), HasSubstr("not a number"));
}

TEST(ComparedMetric, MissingValuesAreReported) {
  EXPECT_THAT(missing("regex:dt ([0-9.]+)", "nothing\n"), HasSubstr("was not found"));
  EXPECT_THAT(missing("regex:dt", "dt"), HasSubstr("matched 'dt', which is not a number"));
  EXPECT_THAT(missing("regex:(nan)", "nan"), HasSubstr("not a number"));
  EXPECT_THAT(missing("json:a.b", "{\"a\": 1}"), HasSubstr("has no number"));
  EXPECT_THAT(missing("json:a", ""), HasSubstr("has no number"));
  EXPECT_THAT(missing("json:a", "\xff\xfe{\"a\""), HasSubstr("has no number"));
}

TEST(ComparedMetric, AnyBytesAndAnyLength) {
  std::string output(1 << 20, 'x');
  output += "\n\xff\xfe dt 4\n\0";
  EXPECT_EQ(found("regex:dt ([0-9.]+)", output), 4);
  EXPECT_EQ(found("regex:.*dt ([0-9.]+).*", output), 4);
}

TEST(ComparedMetric, JsonByPath) {
  EXPECT_EQ(found("json:a.b.1.c", R"({"a": {"b": [0, {"c": 2.5}]}})"), 2.5);
  EXPECT_EQ(found("json:t", "noise\n{\"t\": 1}\n{\"t\": 2}\n{\"u\": 3}\n"), 2);
  EXPECT_EQ(found("json:t", "{\"t\": \"1.25\"}"), 1.25);
}

TEST(ComparedMetric, StepsByLine) {
  const auto regex = parse_steps("regex:step ([0-9]+).*dt ([0-9.]+)ms");
  ASSERT_TRUE(regex);
  const auto steps =
      steps_in(*regex, {"step 2 dt 20ms\nstep 1 dt 10ms\nx\nstep 2 dt 30ms\nstep 3 dt 0ms"});
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->steps.size(), 2U);
  EXPECT_EQ(steps->steps[0].step, 1);
  EXPECT_EQ(steps->steps[1].value, 30);
  const auto json = parse_steps("json:n,time.s");
  ASSERT_TRUE(json);
  EXPECT_EQ(steps_in(*json, {"{\"n\": 4, \"time\": {\"s\": 0.5}}\n{\"n\": 5}\n"})->steps.size(),
            1U);
  EXPECT_FALSE(steps_in(*json, {"nothing"}));
  for (const char* text : {"wall", "regex:x", "regex:(a)", "json:a", "json:a,b,c"}) {
    EXPECT_FALSE(parse_steps(text)) << text;
  }
}

// As tqdm prints: one line for people, a step after the other.
TEST(ComparedMetric, ACarriageReturnEndsALine) {
  std::string bar;
  for (int step = 1; step <= 199; ++step) {
    bar += "\rstep " + std::to_string(step) + " of 199 dt: " + std::to_string(step) + "ms   ";
  }
  const auto regex = parse_steps("regex:step ([0-9]+).*dt: ([0-9.]+)ms");
  const auto found = steps_in(*regex, {"loading\n", bar + "\n"});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->in_err);
  ASSERT_EQ(found->steps.size(), 199U);
  for (const StepValue& step : found->steps) EXPECT_EQ(step.value, static_cast<double>(step.step));
  EXPECT_EQ(found->steps.back().offset, bar.size());
  EXPECT_EQ(value_in(*parse_metric("regex:dt: ([0-9.]+)"), RunOutput{"", bar}), 199);
}

TEST(ComparedMetric, StandardOutputGoesBeforeStandardError) {
  EXPECT_EQ(value_in(*parse_metric("regex:t=([0-9]+)"), RunOutput{"t=1\nt=2", "t=3"}), 2);
  EXPECT_EQ(value_in(*parse_metric("regex:t=([0-9]+)"), RunOutput{"t", "t=3"}), 3);
  EXPECT_FALSE(steps_in(*parse_steps("regex:([0-9]) ([0-9])"), {"1 2", "3 4"})->in_err);
  // The end of one stream and the beginning of the other do not form a line.
  EXPECT_FALSE(value_in(*parse_metric("regex:a=1"), RunOutput{"a", "=1"}));
}

TEST(ComparedMetric, JsonAmongOtherLines) {
  const char* pretty = "{\n  \"loss\": 2.5,\n  \"list\": [\n    {\"loss\": 9}\n  ]\n}\n";
  EXPECT_EQ(value_in(*parse_metric("json:loss"), RunOutput{pretty, "warning: slow\n"}), 2.5);
  EXPECT_EQ(
      value_in(*parse_metric("json:loss"), RunOutput{std::string("loading\n") + pretty + "bye"}),
      2.5);
  EXPECT_EQ(value_in(*parse_metric("json:loss"), RunOutput{"hello", pretty}), 2.5);
  EXPECT_EQ(value_in(*parse_metric("json:list.0.loss"), RunOutput{pretty}), 9);
}

TEST(ComparedMetric, LinesAreLong) {
  const std::string line = std::string(60'000, 'x') + " dt 4";
  EXPECT_EQ(found("regex:dt ([0-9.]+)", line), 4);
  EXPECT_EQ(found("regex:^x+ dt ([0-9.]+)$", line), 4);
}

// Exponential backtracking, and quadratic time on a long line: neither may hang.
TEST(ComparedMetric, PatternsThatNeverEndAreEnded) {
  const base::Stopwatch watch;
  EXPECT_THAT(missing("regex:(a+)+b", std::string(50, 'a') + "cb"), HasSubstr("too many ways"));
  EXPECT_EQ(found("regex:(?:a+)+b([0-9])", std::string(50, 'a') + "b7"), 7);
  const std::string wide(65'536, 'a');
  const SearchLimit short_one({}, base::Seconds(0.2));
  const auto slow = value_in(*parse_metric("regex:a*a*b"), RunOutput{wide}, short_one);
  EXPECT_FALSE(slow);
  const SearchLimit interrupted([] { return true; });
  EXPECT_THAT(value_in(*parse_metric("regex:a"), RunOutput{wide}, interrupted).error().line(),
              HasSubstr("was interrupted"));
  EXPECT_LT(watch.elapsed().count(), 10);
}

}  // namespace
}  // namespace assay::compare
