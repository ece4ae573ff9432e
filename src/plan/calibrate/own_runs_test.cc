// The constants of our trainer are those that fit its own runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plan/calibrate/fit.h"
#include "plan/testing/documented.h"
#include "plan/testing/own_runs.h"
#include "plan/work_of_job.h"
#include "spec/load.h"

namespace assay::plan {
namespace {

// Less than that of other rows: the priors are of a profile of these runs, and keep its parts right
// where sums alone would not.
constexpr double kProfilePull = 0.03;

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
  FitStart start{.constants = shipped_constants(), .pull = kProfilePull, .own = true};
  for (const ConstantInfo& info : constant_table()) {
    if (info.own) start.constants.*info.value = info.prior;
  }
  double worst = 0;
  for (const Row& row : rows) {
    worst = std::max(worst, std::abs(predict(row, shipped_constants())->step_s / *row.step_s - 1));
  }
  EXPECT_LE(worst, 0.03);
  testing::Page(ASSAY_SOURCE_DIR, "docs/plan-model.md")
      .says("- the # runs of our own trainer: # % at most",
            {static_cast<double>(rows.size()), 100 * worst});
  testing::Page(ASSAY_SOURCE_DIR, "docs/plan.md")
      .says("dense models and mixtures, are within # %", {std::ceil(100 * worst)});
  const Constants fitted = fit(rows, start);
  for (const ConstantInfo& info : constant_table()) {
    // As it is written in the table: to four digits.
    EXPECT_NEAR(fitted.*info.value / info.shipped, 1, 5e-4)
        << info.name << " is " << fitted.*info.value;
  }
}

}  // namespace
}  // namespace assay::plan
