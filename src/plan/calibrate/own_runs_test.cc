// The constants of our trainer are those that fit its own runs.
#include <gtest/gtest.h>

#include "plan/calibrate/fit.h"
#include "plan/testing/own_runs.h"
#include "plan/work_of_job.h"
#include "spec/load.h"

namespace assay::plan {
namespace {

TEST(OwnConstants, AreFittedToOurTrainersRuns) {
  std::vector<Row> rows;
  for (const testing::OwnRun& run : testing::own_runs()) {
    const auto job = spec::load(run.job, {.overrides = run.set});
    ASSERT_TRUE(job.has_value()) << job.error().line();
    rows.push_back(
        {.source = "bench/results/" + std::string(run.job == "moe-9b-h200" ? "moe.md" : "train.md"),
         .step_s = run.seconds,
         .candidates = {work_of(std::get<spec::JobSpec>(job->spec)).value()}});
  }
  FitStart start{.constants = shipped_constants(), .pull = kOwnPull, .own = true};
  for (const ConstantInfo& info : constant_table()) {
    if (info.own) start.constants.*info.value = info.prior;
  }
  const Constants fitted = fit(rows, start);
  for (const ConstantInfo& info : constant_table()) {
    // As it is written in the table: to four digits.
    EXPECT_NEAR(fitted.*info.value / info.shipped, 1, 5e-4)
        << info.name << " is " << fitted.*info.value;
  }
}

}  // namespace
}  // namespace assay::plan
