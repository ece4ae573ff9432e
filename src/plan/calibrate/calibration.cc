#include "plan/calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/units.h"
#include "plan/calibrate/cross_validation.h"
#include "plan/calibrate/fit.h"
#include "plan/calibrate/residuals.h"
#include "plan/calibrate/scores.h"

namespace assay::plan {
namespace {

// Weight of the priors when fitting to somebody's own runs. A step measured on the very machine is
// trusted to a percent or so, not to the 5 % by which tables of others are off.
constexpr double kPullOfOwnRuns = 0.02;

base::Result<void> check_measured(std::span<const Row> rows) {
  if (std::any_of(rows.begin(), rows.end(), has_time)) return {};
  return base::fail(base::usage_error("rows", "none has a measured step that can be predicted",
                                      "fill in step_s, and what the reasons name as missing"));
}

FittedTo fit_of(std::span<const Row> rows) {
  std::set<std::string> projects;
  FittedTo fitted;
  for (const Row& row : rows) {
    if (!has_time(row)) continue;
    ++fitted.rows;
    projects.insert(row.project);
  }
  fitted.projects = {projects.begin(), projects.end()};
  return fitted;
}

// A test compares them with the tables of measured rows.
FittedTo shipped_fit() {
  return {.projects = {"AMD-AGI/Primus",
                       "IST-DASLab/llmq",
                       "InternLM/InternEvo",
                       "InternLM/xtuner",
                       "KempnerForge",
                       "MLPerf Training",
                       "Modalities/modalities",
                       "NVIDIA-NeMo/Automodel",
                       "NVIDIA-NeMo/Megatron-Bridge",
                       "NVIDIA/Megatron-LM",
                       "NVIDIA/NeMo",
                       "NVIDIA/dgxc-benchmarking",
                       "arXiv:2104.04473",
                       "arXiv:2201.11990",
                       "arXiv:2205.05198",
                       "arXiv:2311.05610",
                       "arXiv:2401.10241",
                       "arXiv:2402.15627",
                       "arXiv:2407.21783",
                       "arXiv:2409.02060",
                       "arXiv:2412.19437",
                       "arXiv:2505.11432",
                       "arXiv:2603.07685",
                       "bigscience-workshop/bigscience",
                       "bluenotebook.io",
                       "foundation-model-stack/fms-fsdp",
                       "hpcaitech/ColossalAI",
                       "jzhang38/TinyLlama",
                       "karpathy/llm.c",
                       "karpathy/nanochat",
                       "marin-community/marin",
                       "modelscope/ms-swift",
                       "mosaicml/llm-foundry",
                       "swiss-ai/Megatron-LM",
                       "vTrain"}};
}

}  // namespace

std::string described(const std::optional<FittedTo>& fitted, const std::string& file,
                      bool mixtures) {
  if (!fitted) {
    return fmt::format(
        "constants of {}: it does not say what they were fitted to, so their errors are not known",
        file);
  }
  if (fitted->own_error) {
    return fmt::format(
        "constants of {}, adjusted to {} of your runs: {:.1f} % mean error on these; on other jobs "
        "not known",
        file, fitted->rows, 100 * *fitted->own_error);
  }
  const char* models = mixtures ? "mixtures" : "dense models";
  const KindScore& kind = mixtures ? fitted->mixtures : fitted->dense;
  const std::string source =
      fmt::format("constants of {}, fitted to {} of {}", file, base::counted(fitted->rows, "row"),
                  base::counted(static_cast<std::int64_t>(fitted->projects.size()), "project"));
  if (kind.projects == 0) {
    return fmt::format("{}, none of them with {}: errors on {} are not known", source, models,
                       models);
  }
  return fmt::format("{}: {:.1f} % mean error on {}, each project ({}) left out of the fit", source,
                     100 * kind.mean, models, kind.projects);
}

PlanInputs Calibration::inputs(const Assumed& assumed) const {
  return {
      .assumed = assumed, .constants = {constants, memory}, .intervals = intervals, .seen = seen};
}

std::vector<RowPrediction> predict_all(std::span<const Row> rows, const Calibration& calibration) {
  return predict_all(rows, calibration.constants, calibration.memory, calibration.intervals,
                     calibration.seen);
}

Calibration shipped_calibration() {
  return {.constants = shipped_constants(),
          .memory = shipped_memory_constants(),
          .intervals = shipped_intervals(),
          .seen = shipped_seen(),
          .fitted_to = shipped_fit()};
}

base::Result<Calibration> calibrate(std::span<const Row> rows) {
  ASSAY_TRY_VOID(check_measured(rows));
  Calibration made{.constants = fit(rows), .memory = shipped_memory_constants()};
  const std::vector<RowPrediction> unseen = cross_validate(rows);
  if (std::any_of(rows.begin(), rows.end(), has_needed_memory)) {
    made.memory = fit_memory(rows);
    MemoryIntervals& of_memory = made.memory_intervals;
    const auto needed = needed_memory_of(rows, unseen);
    const auto shown = shown_memory_of(rows, unseen);
    of_memory = {.needed = needed.value_or(of_memory.needed),
                 .shown = shown.value_or(of_memory.shown),
                 .needed_of_others = !needed,
                 .shown_of_others = !shown};
  }
  made.intervals = interval_table(residuals_of(rows, unseen));
  const Score left_out = score(rows, unseen);
  made.fitted_to = fit_of(rows);
  made.fitted_to->dense = left_out.dense;
  made.fitted_to->mixtures = left_out.mixtures;
  // Rows of dense models alone say nothing about mixtures, and vice versa.
  for (std::size_t c = 0; c < kSoftwareClasses; ++c) {
    if (!std::isfinite(made.intervals.by_class[c].high))
      made.intervals.by_class[c] = shipped_intervals().by_class[c];
  }
  made.seen = seen_in(rows);
  return made;
}

base::Result<Calibration> calibrate_to_runs(std::span<const Row> runs, const Calibration& general) {
  ASSAY_TRY_VOID(check_measured(runs));
  Calibration made = general;
  made.constants =
      fit(runs, {.constants = general.constants, .pull = kPullOfOwnRuns, .project_effects = false});
  made.fitted_to = FittedTo{.rows = fit_of(runs).rows,
                            .own_error = score(runs, predict_all(runs, made)).time.mean};
  return made;
}

}  // namespace assay::plan
