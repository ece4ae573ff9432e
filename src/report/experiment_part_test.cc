#include "report/experiment_part.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "compare/findings.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/testing/html.h"

namespace assay::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Blocks of 100 against 102, the fourth with a host that was disturbed.
compare::Measured measured(std::int64_t blocks) {
  compare::Measured m;
  m.experiment.arms = {{.name = "A", .command = "<script>a</script>"},
                       {.name = "B", .command = "b"}};
  m.experiment.metric = *compare::parse_metric("regex:took");
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::size_t arm = 0; arm < 3; ++arm) {
      compare::ArmRun run;
      run.run = static_cast<std::int64_t>(m.runs.size()) + 1;
      run.block = block;
      run.arm = arm;
      run.value = (arm == 1 ? 102 : 100) + 0.01 * static_cast<double>((block * 7 + run.run) % 5);
      m.runs.push_back(run);
    }
  }
  m.marks = {{3, 3, {"others used 1.9 processors"}}};
  return m;
}

PagePart part_of(const compare::Measured& m) {
  const compare::Findings findings = compare::findings_of(m, true);
  return experiment_part({.measured = m,
                          .findings = findings,
                          .directory = "exp",
                          .stopped = "the maximum number of pairs was reached",
                          .preflight = {"load is 7"},
                          .data = {{"verdict", "FAIL"}}});
}

TEST(ExperimentPart, DrawsEveryPairWhereItsRatioLies) {
  const compare::Measured m = measured(12);
  const PagePart part = part_of(m);
  EXPECT_EQ(part.verdict.word, "FAIL");
  EXPECT_EQ(part.verdict.rating, Rating::kBad);
  const std::string text = html({.title = "e", .parts = {part}});
  testing::read_html(text);
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;a&lt;/script&gt;"));
  const auto& pairs = std::get<Chart>(part.sections[1].blocks[0]);
  EXPECT_EQ(pairs.name, "pairs-1");
  const auto elements = plot::testing::elements_of(pairs.wide);
  // A mark per pair, and one per group in the legend.
  EXPECT_EQ(plot::testing::those(elements, "circle").size(), 11U + 1U);
  for (std::int64_t block = 0; block < 12; ++block) {
    const auto at = static_cast<std::size_t>(block) * 3;
    const double percent = 100 * (m.runs[at + 1].value / m.runs[at].value - 1);
    EXPECT_THAT(pairs.wide.svg(), HasSubstr(fmt::format("{} and {:+.3g} %", block + 1, percent)));
  }
  EXPECT_THAT(pairs.wide.description(), HasSubstr("noise floor"));
}

TEST(ExperimentPart, RemarksAreSentences) {
  const std::string text = markdown({.title = "e", .parts = {part_of(measured(12))}});
  EXPECT_THAT(text, HasSubstr("The machine was disturbed in "));
  EXPECT_THAT(text, HasSubstr("B was higher in 12, lower in 0 and equal in 0 of 12 pairs."));
  EXPECT_THAT(text, Not(HasSubstr("\nthe ")));
}

TEST(ExperimentPart, AScanOfOneCommandIsCalledAScan) {
  compare::Measured m = measured(12);
  EXPECT_EQ(part_of(m).kind, "experiment");
  m.experiment.scanned = {"N"};
  for (compare::Arm& arm : m.experiment.arms) arm.values = {arm.name};
  EXPECT_EQ(part_of(m).kind, "scan");
}

TEST(ExperimentPart, OneThatNeverBeganHasAPart) {
  const PagePart part = part_not_begun("scan", "some/folder");
  EXPECT_EQ(part.kind, "scan");
  EXPECT_EQ(part.title, "some/folder");
  EXPECT_EQ(part.verdict.word, "NO VERDICT");
  EXPECT_THAT(markdown({.title = "e", .parts = {part}}),
              HasSubstr("killed before it had recorded"));
}

// The title counts what was named, not the details that a scan adds.
TEST(Page, TheTitleCountsWholeThings) {
  const auto part = [](const char* kind, bool of_previous) {
    PagePart made{.kind = kind, .title = std::string(kind) + " title"};
    made.of_previous = of_previous;
    return made;
  };
  EXPECT_EQ(title_of({part("scan", false), part("experiment", true), part("experiment", true)}),
            "scan title");
  EXPECT_EQ(title_of({part("scan", false), part("experiment", true), part("experiment", false)}),
            "1 scan and 1 experiment");
}

TEST(ExperimentPart, WithoutAPairIsReported) {
  compare::Measured m = measured(0);
  m.failures = {{.run = 1, .block = 0, .arm = 1, .started = "t", .what = "exited with 7"}};
  const PagePart part = part_of(m);
  EXPECT_EQ(part.verdict.word, "NO VERDICT");
  EXPECT_EQ(part.verdict.text, "run 1, arm B: exited with 7");
  EXPECT_EQ(part.title, "b against <script>a</script>");
  const std::string text = markdown({.title = "e", .parts = {part}});
  EXPECT_THAT(text, HasSubstr("It ended at run 1, arm B: exited with 7."));
  // Nothing but the same failure would follow.
  EXPECT_THAT(text, ::testing::Not(HasSubstr("assay compare --resume exp")));
  m.failures.clear();
  EXPECT_THAT(markdown({.title = "e", .parts = {part_of(m)}}),
              HasSubstr("assay compare --resume exp"));
}

TEST(ExperimentPart, AFailureIsNamedAndLeavesNoVerdict) {
  compare::Measured m = measured(12);
  m.failures = {{.run = 37, .block = 12, .arm = 1, .started = "t", .what = "exited with 7"}};
  const PagePart part = part_of(m);
  EXPECT_EQ(part.verdict.word, "NO VERDICT");
  EXPECT_EQ(part.verdict.rating, Rating::kOpen);
  EXPECT_EQ(part.verdict.text, "run 37, arm B: exited with 7");
  EXPECT_THAT(markdown({.title = "e", .parts = {part}}),
              ::testing::Not(::testing::AnyOf(HasSubstr("INCONCLUSIVE"), HasSubstr("FAIL"))));
}

// Kinds of pairs that do not occur are not in the legend; blocks are whole numbers.
TEST(ExperimentPart, TheLegendHasWhatIsDrawn) {
  const auto pairs_of = [](const compare::Measured& m) {
    const PagePart part = part_of(m);
    return std::get<Chart>(part.sections[1].blocks[0]).wide.svg();
  };
  compare::Measured m = measured(12);
  EXPECT_THAT(pairs_of(m), HasSubstr("host disturbed"));
  EXPECT_THAT(pairs_of(m), ::testing::Not(HasSubstr("warm-up")));
  m = measured(2);
  m.marks.clear();
  const std::string plain = pairs_of(m);
  EXPECT_THAT(plain, ::testing::Not(HasSubstr("host disturbed")));
  base::for_each_line(plain, [](std::string_view line) {
    const bool tick_of_blocks = line.find("small middle") != std::string_view::npos;
    EXPECT_TRUE(!tick_of_blocks || line.find(".5<") == std::string_view::npos) << line;
  });
}

TEST(ExperimentPart, AScanIsShownByValue) {
  compare::Measured m = measured(12);
  m.experiment.scanned = {"N"};
  m.experiment.judgement.judged = false;
  for (std::size_t arm = 0; arm < 2; ++arm) {
    m.experiment.arms[arm].values = {std::to_string(arm + 1)};
    m.experiment.arms[arm].name = "N=" + std::to_string(arm + 1);
    m.experiment.arms[arm].scanned_command = "sleep {N}";
  }
  const PagePart part = part_of(m);
  EXPECT_EQ(part.title, "sleep {N} for N = 1, 2");
  EXPECT_EQ(part.verdict.word, "NOT JUDGED");
  EXPECT_EQ(part.verdict.text, "least: N=1, the first");
  EXPECT_EQ(part.sections[0].title, "By value");
  const auto& table = std::get<PageTable>(part.sections[0].blocks[0]);
  EXPECT_EQ(table.columns.front(), "N");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[1][0].text, "2");
  EXPECT_EQ(std::get<Chart>(part.sections[0].blocks[1]).name, "values");
  const std::string text = markdown({.title = "e", .parts = {part}});
  EXPECT_THAT(text, ::testing::Not(::testing::AnyOf(HasSubstr("margin"), HasSubstr("allowed"),
                                                    HasSubstr("Goals"))));
}

TEST(ExperimentPart, ManyPairsStaySmall) {
  const std::string text = html({.title = "e", .parts = {part_of(measured(5000))}});
  EXPECT_LT(text.size(), 2'000'000U);
}

// What decided, where it ran and when results were seen.
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
                                              .stopped = "the maximum number of pairs was reached",
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
