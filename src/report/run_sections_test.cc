#include "report/run_sections.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/markdown.h"

namespace assay::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReportedRun run_of(int ranks, bool waits = true) {
  ReportedRun run;
  for (int rank = 0; rank < ranks; ++rank) {
    // Rank 1 has twice the work of the others, which wait for it.
    const double wait_s = rank == 1 ? 0.2 : 0.6;
    run.ranks.push_back({.rank = rank,
                         .host = fmt::format("n{}", rank / 2 + 1),
                         .place = fmt::format("fsdp {}", rank),
                         .step = 11,
                         .steps = 10,
                         .step_s = 10,
                         .wait_s = waits ? std::optional(10 * wait_s) : std::nullopt,
                         .last_step_s = 1,
                         .last_wait_s = wait_s,
                         .planned_bytes = 1 << 20,
                         .memory_bytes = (1 << 20) + (1 << 19),
                         .host_bytes = 1 << 24});
  }
  return run;
}

std::string text_of(const ReportedRun& run) {
  Page page;
  PagePart part{.kind = "run", .title = "a run"};
  add_section(part, ranks_section(run));
  page.parts.push_back(std::move(part));
  return markdown(page);
}

TEST(RunRanks, TheSlowestIsNamedWithItsNodeAndByHowMuch) {
  const std::string text = text_of(run_of(4));
  EXPECT_THAT(text, HasSubstr("on n1: 800 ms of its own work in a step, 100.0 % more than the "
                              "median rank"));
  EXPECT_THAT(text, HasSubstr("1 \\(fsdp 1\\)"));
  EXPECT_THAT(text, HasSubstr(", slowest"));
  EXPECT_THAT(text, HasSubstr("+50.0 %")) << "memory against its plan";
  EXPECT_THAT(text, HasSubstr("on 2 nodes"));
  const base::Json json = ranks_json(run_of(4));
  EXPECT_EQ(json["slowest"]["rank"], 1);
  EXPECT_NEAR(json["slowest"]["slower_by"].get<double>(), 1, 1e-9);
  EXPECT_EQ(json["ranks"].size(), 4U);
  EXPECT_NEAR(json["ranks"][0]["busy_s"].get<double>(), 0.4, 1e-9);
}

TEST(RunRanks, ThePredictionIsBesideEveryRank) {
  ReportedRun run = run_of(2);
  EXPECT_THAT(text_of(run), Not(HasSubstr("predicted step")));
  run.predicted.emplace().step_s = 0.8;
  const std::string text = text_of(run);
  EXPECT_THAT(text, HasSubstr("predicted step"));
  EXPECT_THAT(text, HasSubstr("+25.0 %"));
}

TEST(RunRanks, WhereWaitingIsNotMeasuredNobodyIsSlowest) {
  const std::string text = text_of(run_of(2, false));
  EXPECT_THAT(text, HasSubstr("Waiting for communication was not measured"));
  EXPECT_THAT(text, Not(HasSubstr("slowest")));
  EXPECT_TRUE(ranks_json(run_of(2, false))["slowest"].is_null());
}

TEST(RunRanks, OfManyTheBusiestAreShown) {
  const std::string text = text_of(run_of(1000));
  EXPECT_THAT(text, HasSubstr("The 32 ranks with the most work, of 1000."));
  EXPECT_THAT(text, HasSubstr("1 \\(fsdp 1\\)"));
  EXPECT_THAT(text, Not(HasSubstr("999 \\(fsdp 999\\)")));
  EXPECT_EQ(ranks_json(run_of(1000))["ranks"].size(), 1000U);
}

TEST(RunRanks, ARunOnOneRankHasNoSuchSection) {
  EXPECT_TRUE(ranks_section(ReportedRun{}).blocks.empty());
  EXPECT_TRUE(ranks_json(ReportedRun{}).is_null());
}

}  // namespace
}  // namespace assay::report
