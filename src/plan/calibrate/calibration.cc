#include "plan/calibrate/calibration.h"

#include <algorithm>
#include <array>

#include "plan/calibrate/cross_validation.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"
#include "plan/calibrate/scores.h"

namespace assay::plan {
namespace {

// A step measured on the very machine is trusted to a percent or so, not to the 5 %
// by which tables of others are off.
constexpr double kPullOfOwnRuns = 0.03;

base::Result<void> check_measured(std::span<const Row> rows) {
  if (std::any_of(rows.begin(), rows.end(), has_time)) return {};
  return base::fail(base::usage_error("rows", "none has a measured step that can be predicted",
                                      "fill in step_s, and what the reasons name as missing"));
}

// Of the rows in tests/data/plan; a test compares them.
constexpr std::array<std::string_view, 18> kShippedFamilies = {
    "seed001 bluenotebook.io/blog/h100-nanochat-training",
    "nanochat dev/LEADERBOARD.md",
    "nanochat dev/LOG.md",
    "KempnerForge benchmarks/mfu_scaling/mfu_scaling.md",
    "KempnerForge benchmarks/moe_expert_parallel/moe_ep_benchmark.md",
    "KempnerForge benchmarks/moe_packed/moe_packed_benchmark.md",
    "llm-foundry benchmarking/README.md",
    "Korthikanti et",
    "Megatron-LM SC21",
    "Megatron-LM README",
    "MT-NLG arXiv:2201.11990",
    "llm.c scripts/run_*.sh",
    "NeMo 24.07",
    "Megatron-Bridge 25.11",
    "Megatron-Bridge 25.09",
    "NeMo Automodel",
    "vTrain data/ground_truth_multi.csv",
    "vTrain data/ground_truth_single.csv",
};

std::vector<std::string> families_of(std::span<const Row> rows) {
  std::vector<std::string> families;
  for (const Row& row : rows) {
    const std::string_view family = family_of(row.source);
    if (!has_time(row)) continue;
    if (std::find(families.begin(), families.end(), family) == families.end()) {
      families.emplace_back(family);
    }
  }
  return families;
}

}  // namespace

const IntervalTable& Calibration::intervals(std::string_view source, bool assumed) const {
  if (assumed) return unknown_source;
  const auto found = std::find(families.begin(), families.end(), family_of(source));
  return found == families.end() ? unknown_source : known_source;
}

PlanInputs Calibration::inputs(const Assumed& assumed) const {
  return {.assumed = assumed,
          .constants = {constants, memory},
          .intervals = unknown_source,
          .ranges = ranges};
}

std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Calibration& calibration) {
  std::vector<RowPrediction> predictions;
  for (const Row& row : rows) {
    predictions.push_back(predict_all(std::span(&row, 1), calibration.constants, calibration.memory,
                                      calibration.intervals(row.source, row.assumed))
                              .front());
  }
  return predictions;
}

Calibration shipped_calibration() {
  return {.constants = shipped_constants(),
          .memory = shipped_memory_constants(),
          .known_source = shipped_intervals(true),
          .unknown_source = shipped_intervals(false),
          .ranges = shipped_ranges(),
          .families = {kShippedFamilies.begin(), kShippedFamilies.end()}};
}

base::Result<Calibration> calibrate(std::span<const Row> rows) {
  ASSAY_TRY_VOID(check_measured(rows));
  Calibration made{.constants = fit(rows), .memory = shipped_memory_constants()};
  if (std::any_of(rows.begin(), rows.end(), has_memory)) made.memory = fit_memory(rows);
  const auto seen = predict_all(rows, made.constants, made.memory, {});
  made.known_source = interval_table(residuals_of(rows, seen));
  made.unknown_source = interval_table(residuals_of(rows, cross_validate(rows)));
  made.ranges = ranges_of(rows);
  made.families = families_of(rows);
  return made;
}

base::Result<Calibration> calibrate_to_runs(std::span<const Row> runs, const Calibration& general) {
  ASSAY_TRY_VOID(check_measured(runs));
  Calibration made = general;
  made.constants = fit(runs, {.constants = general.constants, .pull = kPullOfOwnRuns});
  return made;
}

}  // namespace assay::plan
