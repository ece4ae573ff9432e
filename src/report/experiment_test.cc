// An experiment's page says what decided, where it ran and when results were seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/experiment_part.h"
#include "report/markdown.h"

namespace assay::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

compare::Measured three_arms() {
  compare::Measured m;
  m.experiment.arms = {{"A", "a"}, {"ok", "b"}, {"slow", "c"}};
  m.experiment.second_baseline = false;
  for (std::int64_t block = 0; block < 12; ++block) {
    for (std::size_t arm = 0; arm < 3; ++arm) {
      compare::ArmRun run;
      run.run = static_cast<std::int64_t>(m.runs.size()) + 1;
      run.block = block;
      run.arm = arm;
      run.value = arm == 2 ? 110 : 100;
      m.runs.push_back(run);
    }
  }
  return m;
}

std::string page_of(const compare::Measured& m, double share) {
  const compare::Findings findings = compare::findings_of(m, share);
  return markdown({.title = "e",
                   .parts = {experiment_part({.measured = m,
                                              .findings = findings,
                                              .directory = "exp",
                                              .stopped = "all pairs were made",
                                              .preflight = {},
                                              .data = {}})}});
}

TEST(ExperimentPage, TheHeadlineIsOfTheArmThatDecided) {
  EXPECT_THAT(page_of(three_arms(), 1), AllOf(HasSubstr("slow against A: \\+10.00 %"),
                                              Not(HasSubstr("ok against A: \\+0.00 % \\("))));
}

TEST(ExperimentPage, HasMachinesInterimAnalysesAndFailures) {
  compare::Measured m = three_arms();
  m.sessions = {{.begun = "2026-11-15T00:00:00Z",
                 .host = "node7",
                 .machine = "2-core Some CPU",
                 .kernel = "6.1.0-18",
                 .driver = "580.65.06",
                 .assay = "0.1.0 abcdef",
                 .project = "0123456"}};
  m.analyses = {
      {.run = 9, .pairs = 3},
      {.run = 36, .pairs = 12, .stop = compare::StopReason::kTime, .alpha_share = 1.0 / 12}};
  m.failures = {{.run = 37, .block = 12, .arm = 2, .started = "t", .what = "exited with 7"}};
  const std::string text = page_of(m, 1.0 / 12);
  for (const char* fact : {"node7", "2-core Some CPU", "6.1.0-18", "580.65.06", "0.1.0 abcdef",
                           "0123456", "it was interrupted", "the time limit was reached",
                           "exited with 7", "reported 1 time before"}) {
    EXPECT_THAT(text, HasSubstr(fact));
  }
  EXPECT_THAT(page_of(three_arms(), 1), Not(HasSubstr("History")));
}

TEST(ExperimentPage, WithStepsTheMetricIsTheSteps) {
  compare::Measured m = three_arms();
  EXPECT_THAT(page_of(m, 1), HasSubstr("wall"));
  m.experiment.steps = *compare::parse_steps("stored:seconds");
  for (compare::ArmRun& run : m.runs) {
    run.wall_s = 1;
    for (int step = 1; step <= 5; ++step) run.steps.push_back({step, run.value, 0});
  }
  const std::string text = page_of(m, 1);
  EXPECT_THAT(text, HasSubstr("stored:seconds"));
  EXPECT_THAT(text, Not(HasSubstr("| metric")));
}

}  // namespace
}  // namespace assay::report
