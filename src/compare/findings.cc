#include "compare/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "compare/findings.h"
#include "compare/stopping.h"

namespace assay::compare {
namespace {

// Calls visit(baseline's run, the arm's) for every block after warm-up.
template <class Visit>
void each_pair(const Blocks& blocks, std::size_t arm, const Visit& visit) {
  for (const Block& block : blocks.complete) {
    if (!block.warm_up) visit(*block.runs[0], *block.runs[arm]);
  }
}

// The shift of get(run); nothing if any run lacks the value.
template <class Get>
std::optional<Shift> shift_of(const Blocks& blocks, std::size_t arm, double alpha, const Get& get) {
  std::vector<double> baseline;
  std::vector<double> shifts;
  bool all = true;
  each_pair(blocks, arm, [&](const ArmRun& a, const ArmRun& b) {
    const std::optional<double> of_a = get(a);
    const std::optional<double> of_b = get(b);
    all = all && of_a && of_b;
    if (!all) return;
    baseline.push_back(*of_a);
    shifts.push_back(*of_b - *of_a);
  });
  if (!all || shifts.empty()) return std::nullopt;
  return Shift{base::median(std::move(baseline)), estimate_of(shifts, alpha)};
}

void add_steps(const Experiment& experiment, const Blocks& blocks, Comparison& comparison) {
  std::vector<double> walls;
  each_pair(blocks, comparison.arm, [&](const ArmRun& a, const ArmRun& b) {
    walls.push_back(std::log(b.wall_s / a.wall_s));
    const auto match = match_steps(a.steps, b.steps);
    comparison.steps += match ? match->steps : 0;
    comparison.unmatched += match ? 0 : 1;
  });
  const double alpha = experiment.alpha();
  comparison.whole_runs = effect_of(walls, alpha);
  comparison.startup_s =
      shift_of(blocks, comparison.arm, alpha, [](const ArmRun& run) { return run.startup_s; });
  comparison.after_s =
      shift_of(blocks, comparison.arm, alpha, [](const ArmRun& run) { return run.after_s; });
  comparison.outside_s = shift_of(blocks, comparison.arm, alpha, [&](const ArmRun& run) {
    double stepping = 0;
    for (const StepValue& step : run.steps) stepping += step.value * experiment.step_seconds;
    return std::optional(run.wall_s - stepping);
  });
}

Comparison comparison_of(const Experiment& experiment, const Blocks& blocks, std::size_t arm,
                         double alpha_share) {
  Comparison made{.arm = arm};
  const std::vector<double> found = differences(blocks, arm);
  made.effect = effect_of(found, experiment.alpha(), {.seed = experiment.seed});
  made.verdict = verdict_spending(found, experiment.alpha(), alpha_share, experiment.judgement);
  made.judged = alpha_share > 0 && alpha_share < 1
                    ? estimate_of(found, experiment.alpha() * alpha_share)
                    : made.effect.estimate;
  if (experiment.steps) add_steps(experiment, blocks, made);
  if (experiment.quality) {
    made.quality =
        shift_of(blocks, arm, experiment.alpha(), [](const ArmRun& run) { return run.quality; });
  }
  return made;
}

ArmSummary summary_of(const Blocks& blocks, std::size_t arm) {
  ArmSummary summary{.arm = arm};
  std::vector<double> values;
  std::vector<double> logs;
  std::vector<double> walls;
  std::vector<double> cpus;
  for (const Block& block : blocks.complete) {
    if (block.warm_up) continue;
    const ArmRun& run = *block.runs[arm];
    values.push_back(run.value);
    logs.push_back(std::log(run.value));
    walls.push_back(run.wall_s);
    cpus.push_back(run.cpu_s);
    const auto steps = static_cast<std::int64_t>(run.steps.size());
    summary.least_steps = values.size() == 1 ? steps : std::min(summary.least_steps, steps);
    summary.most_steps = std::max(summary.most_steps, steps);
  }
  if (values.empty()) return summary;
  summary.runs = static_cast<std::int64_t>(values.size());
  summary.deviation_pct = percent(base::robust_deviation(logs));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  summary.low = *low;
  summary.high = *high;
  summary.median = base::median(std::move(values));
  summary.wall_s = base::median(std::move(walls));
  summary.cpu_s = base::median(std::move(cpus));
  return summary;
}

// Whether the shift is not significant, or no larger than that between two equal arms.
bool within_noise(const Shift& shift, const std::optional<Shift>& band) {
  if (shift.estimate.method == Method::kNone || shift.estimate.interval.contains(0)) return true;
  if (!band || band->estimate.method == Method::kNone) return false;
  const ConfidenceInterval& noise = band->estimate.interval;
  return std::abs(shift.estimate.centre) <= std::max(std::abs(noise.low), std::abs(noise.high));
}

// Orders comparisons by verdict, then by the end of the interval that decided it.
std::pair<int, double> badness(const Comparison& comparison, const Judgement& judgement) {
  const ConfidenceInterval p = percent(comparison.judged.interval);
  const ConfidenceInterval worse =
      judgement.more_is_better ? ConfidenceInterval{-p.high, -p.low} : p;
  switch (comparison.verdict) {
    case IntervalVerdict::kFail:
      return {2, worse.low};
    case IntervalVerdict::kInconclusive:
      return {1, worse.high};
    case IntervalVerdict::kPass:
    case IntervalVerdict::kNotJudged:
      break;
  }
  return {0, worse.high};
}

std::size_t worst_of(const std::vector<Comparison>& comparisons, const Judgement& judgement) {
  const auto worst = std::max_element(comparisons.begin(), comparisons.end(),
                                      [&](const Comparison& a, const Comparison& b) {
                                        return badness(a, judgement) < badness(b, judgement);
                                      });
  return static_cast<std::size_t>(worst - comparisons.begin());
}

}  // namespace

Findings findings_of(const Measured& measured, double alpha_share) {
  const Experiment& experiment = measured.experiment;
  Findings f{.blocks = blocks_of(measured)};
  for (std::size_t arm = 0; arm < experiment.runs_per_block(); ++arm) {
    f.arms.push_back(summary_of(f.blocks, arm));
  }
  if (experiment.second_baseline) {
    f.second_baseline = comparison_of(experiment, f.blocks, experiment.arms.size(), 1);
    const Estimate& e = f.second_baseline->effect.estimate;
    const ConfidenceInterval p = percent(e.interval);
    if (e.method != Method::kNone) {
      f.noise_floor_pct = std::max(std::abs(p.low), std::abs(p.high));
    }
  }
  for (std::size_t arm = 1; arm < experiment.arms.size(); ++arm) {
    Comparison made = comparison_of(experiment, f.blocks, arm, alpha_share);
    if (made.quality) {
      made.quality_within_noise = within_noise(
          *made.quality, f.second_baseline ? f.second_baseline->quality : std::nullopt);
    }
    f.comparisons.push_back(std::move(made));
  }
  f.ranking = ranking_of(experiment, f.blocks);
  f.marked = std::count_if(f.blocks.complete.begin(), f.blocks.complete.end(),
                           [](const Block& block) { return !block.marks.empty(); });
  f.decided_by = worst_of(f.comparisons, experiment.judgement);
  f.verdict = f.deciding().verdict;
  f.warnings = warnings_about(measured, alpha_share, f);
  return f;
}

std::vector<std::size_t> best_arms(const Experiment& e, const Findings& f) {
  std::size_t best = 0;
  double least = 0;  // how much better than the first, as a difference
  for (const Comparison& comparison : f.comparisons) {
    const Estimate& estimate = comparison.effect.estimate;
    if (estimate.pairs == 0) continue;
    const double centre = e.judgement.more_is_better ? -estimate.centre : estimate.centre;
    if (centre < least) {
      best = comparison.arm;
      least = centre;
    }
  }
  std::vector<std::size_t> arms = {best};
  for (std::size_t arm = 0; arm < e.arms.size(); ++arm) {
    if (arm == best) continue;
    const Estimate estimate = estimate_of(differences(f.blocks, best, arm), e.alpha());
    if (estimate.method == Method::kNone || estimate.interval.contains(0)) arms.push_back(arm);
  }
  return arms;
}

std::string headline(const Experiment& e, const Findings& f) {
  return e.scanned.empty() ? ranking_text(e, f.ranking) : best_value_text(e, f);
}

std::string best_value_text(const Experiment& e, const Findings& f) {
  const std::vector<std::size_t> arms = best_arms(e, f);
  const std::size_t best = arms.front();
  const char* word = e.is_time() || e.judgement.more_is_better ? "fastest" : "least";
  if (arms.size() > 1) {
    std::vector<std::string> names;
    for (const std::size_t arm : arms) names.push_back(e.name_of(arm));
    const std::string last = std::move(names.back());
    names.pop_back();
    std::string why = "the interval of their difference includes 0";
    if (f.comparisons.front().effect.estimate.method == Method::kNone) {
      why = "too few pairs for an interval";
    } else if (arms.size() > 2) {
      why = fmt::format("the intervals of their differences from {} include 0", e.name_of(best));
    }
    return fmt::format("{}: {} or {}, not distinguishable: {}", word, fmt::join(names, ", "), last,
                       why);
  }
  if (best == 0) return fmt::format("{}: {}, the first", word, e.arms.front().name);
  const Estimate& estimate = f.comparisons[best - 1].effect.estimate;
  return fmt::format("{}: {}, {} than {}", word, e.name_of(best), ratio_text(e, estimate.centre),
                     e.arms.front().name);
}

Estimate widest_estimate(const Measured& measured) {
  const Blocks blocks = blocks_of(measured);
  Estimate widest;
  for (std::size_t arm = 1; arm < measured.experiment.arms.size(); ++arm) {
    const Estimate e = estimate_of(differences(blocks, arm), measured.experiment.alpha());
    if (arm == 1 || e.half_width_pct() > widest.half_width_pct()) widest = e;
  }
  return widest;
}

}  // namespace assay::compare
