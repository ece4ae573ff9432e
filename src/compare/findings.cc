#include "compare/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compare/series.h"
#include "compare/steps.h"

namespace assay::compare {
namespace {

constexpr double kSurprising = 0.01;  // of a check that should not fail
constexpr double kWidenedMuch = 1.2;
constexpr double kBothAgree = 3;  // half-widths between mean and centre

// Calls visit(baseline's run, the arm's) for every block after warm-up.
template <class Visit>
void each_pair(const Blocks& blocks, std::size_t arm, const Visit& visit) {
  for (const Block& block : blocks.complete) {
    if (!block.warm_up) visit(*block.runs[0], *block.runs[arm]);
  }
}

// What `get` makes of the runs; nothing unless it makes something of all of them.
template <class Get>
std::optional<Shift> shift_of(const Blocks& blocks, std::size_t arm, double alpha, const Get& get) {
  std::vector<double> baseline;
  std::vector<double> shifts;
  bool all = true;
  each_pair(blocks, arm, [&](const RunRecord& a, const RunRecord& b) {
    const std::optional<double> ours = get(a);
    const std::optional<double> theirs = get(b);
    all = all && ours && theirs;
    if (!all) return;
    baseline.push_back(*ours);
    shifts.push_back(*theirs - *ours);
  });
  if (!all || shifts.empty()) return std::nullopt;
  return Shift{median_of(std::move(baseline)), estimate_of(shifts, alpha)};
}

void add_steps(const Experiment& experiment, const Blocks& blocks, Comparison& comparison) {
  std::vector<double> walls;
  each_pair(blocks, comparison.arm, [&](const RunRecord& a, const RunRecord& b) {
    walls.push_back(std::log(b.wall_s / a.wall_s));
    if (const auto match = match_steps(a.steps, b.steps)) comparison.steps += match->steps;
  });
  const double alpha = experiment.alpha();
  comparison.whole_runs = effect_of(walls, alpha);
  comparison.startup_s =
      shift_of(blocks, comparison.arm, alpha, [](const RunRecord& run) { return run.startup_s; });
  comparison.after_s =
      shift_of(blocks, comparison.arm, alpha, [](const RunRecord& run) { return run.after_s; });
  comparison.outside_s = shift_of(blocks, comparison.arm, alpha, [&](const RunRecord& run) {
    double stepping = 0;
    for (const StepValue& step : run.steps) stepping += step.value * experiment.step_seconds;
    return std::optional(run.wall_s - stepping);
  });
}

Comparison comparison_of(const Experiment& experiment, const Blocks& blocks, std::size_t arm) {
  Comparison made{.arm = arm};
  made.effect = effect_of(differences(blocks, arm), experiment.alpha(), {.seed = experiment.seed});
  made.verdict = verdict_of(made.effect.estimate, experiment.judgement);
  if (experiment.steps) add_steps(experiment, blocks, made);
  if (experiment.quality) {
    made.quality =
        shift_of(blocks, arm, experiment.alpha(), [](const RunRecord& run) { return run.quality; });
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
    const RunRecord& run = *block.runs[arm];
    values.push_back(run.value);
    logs.push_back(std::log(run.value));
    walls.push_back(run.wall_s);
    cpus.push_back(run.cpu_s);
  }
  if (values.empty()) return summary;
  summary.runs = static_cast<std::int64_t>(values.size());
  summary.deviation_pct = percent(robust_deviation(logs));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  summary.low = *low;
  summary.high = *high;
  summary.median = median_of(std::move(values));
  summary.wall_s = median_of(std::move(walls));
  summary.cpu_s = median_of(std::move(cpus));
  return summary;
}

// A quality is as it was if its shift cannot be told from none, or is no further than two equal
// arms are from each other.
bool within_noise(const Shift& shift, const std::optional<Shift>& band) {
  if (shift.estimate.method == Method::kNone || shift.estimate.interval.contains(0)) return true;
  if (!band || band->estimate.method == Method::kNone) return false;
  const Interval& noise = band->estimate.interval;
  return std::abs(shift.estimate.centre) <= std::max(std::abs(noise.low), std::abs(noise.high));
}

void remark_on(const std::string& name, const Effect& effect, std::vector<std::string>& remarks) {
  const Estimate& e = effect.estimate;
  if (e.method == Method::kNone) return;
  if (e.widening > kWidenedMuch) {
    remarks.push_back(fmt::format(
        "{}: differences depend on the ones before (rank correlation {:.2f}): {} pairs say as much "
        "as {:.0f}, and the interval is {:.1f} times as wide for it",
        name, e.autocorrelation, e.pairs, e.effective_pairs(), e.widening));
  }
  if (effect.drift.p < kSurprising) {
    remarks.push_back(
        fmt::format("{}: the effect drifts, by {:+.2f} % from the first half to the "
                    "second: it is an average over time",
                    name, percent(effect.drift.change)));
  }
  if (!effect.outliers.empty()) {
    remarks.push_back(fmt::format("{}: {} of {} pairs stand apart; they are in the result", name,
                                  effect.outliers.size(), e.pairs));
  }
  if (std::abs(effect.mean - e.centre) > kBothAgree * e.interval.half_width()) {
    remarks.push_back(
        fmt::format("{}: the mean, {:+.2f} %, is far from the centre: rare slow runs "
                    "decide it, and the verdict is about the usual ones",
                    name, percent(effect.mean)));
  }
}

void add_remarks(const Experiment& experiment, Findings& f) {
  for (const Comparison& comparison : f.comparisons) {
    remark_on(experiment.name_of(comparison.arm), comparison.effect, f.remarks);
  }
  if (f.second_baseline) {
    const Estimate& e = f.second_baseline->effect.estimate;
    if (e.method != Method::kNone && !e.interval.contains(0)) {
      f.remarks.push_back(
          fmt::format("two equal arms differ by {:+.2f} %: one experiment of twenty shows that by "
                      "chance; if it "
                      "happens again, distrust this machine",
                      percent(e.centre)));
    }
  }
  if (f.marked > 0) {
    std::set<std::string> kinds;
    for (const Block& block : f.blocks.complete)
      kinds.insert(block.marks.begin(), block.marks.end());
    f.remarks.push_back(fmt::format("the machine was disturbed in {} of {} blocks, e.g. {}",
                                    f.marked, f.blocks.complete.size(), *kinds.begin()));
  }
  if (f.blocks.cut_short > 0) {
    f.remarks.push_back(counted(f.blocks.cut_short, "block") + " cut short and not paired");
  }
}

Verdict worst_of(const std::vector<Comparison>& comparisons) {
  Verdict worst = Verdict::kPass;
  for (const Comparison& comparison : comparisons) {
    if (comparison.verdict == Verdict::kFail) return Verdict::kFail;
    if (comparison.verdict == Verdict::kInconclusive) worst = Verdict::kInconclusive;
  }
  return worst;
}

}  // namespace

Findings findings_of(const Measured& measured, bool complete) {
  const Experiment& experiment = measured.experiment;
  Findings f{.blocks = blocks_of(measured)};
  for (std::size_t arm = 0; arm < experiment.runs_per_block(); ++arm) {
    f.arms.push_back(summary_of(f.blocks, arm));
  }
  if (experiment.second_baseline) {
    f.second_baseline = comparison_of(experiment, f.blocks, experiment.arms.size());
    const Estimate& e = f.second_baseline->effect.estimate;
    const Interval p = percent(e.interval);
    if (e.method != Method::kNone) {
      f.noise_floor_pct = std::max(std::abs(p.low), std::abs(p.high));
    }
  }
  for (std::size_t arm = 1; arm < experiment.arms.size(); ++arm) {
    Comparison made = comparison_of(experiment, f.blocks, arm);
    if (!complete) made.verdict = Verdict::kInconclusive;
    if (made.quality) {
      made.quality_within_noise = within_noise(
          *made.quality, f.second_baseline ? f.second_baseline->quality : std::nullopt);
    }
    f.comparisons.push_back(std::move(made));
  }
  f.marked = std::count_if(f.blocks.complete.begin(), f.blocks.complete.end(),
                           [](const Block& block) { return !block.marks.empty(); });
  f.verdict = worst_of(f.comparisons);
  add_remarks(experiment, f);
  return f;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
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
