#include "compare/findings.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/units.h"
#include "compare/modality.h"

namespace assay::compare {
namespace {

constexpr double kSignificant = 0.01;  // of a check that should not fail
constexpr double kWidenedMuch = 1.2;
constexpr double kFarApart = 3;  // half-widths between mean and centre
// As ln(B/A): differences below this print as equal percentages with two decimals. If all runs are
// equal, the half-width is 0 and only rounding errors remain.
constexpr double kEqualInPrint = 5e-5;
constexpr double kGroupsApart = 0.01;  // as ln(B/A)
constexpr std::int64_t kFewSteps = 4;  // fewer: the pattern probably misses some

void warn_about_change(std::int64_t pairs, std::string_view what, const std::string& from,
                       const std::string& to, std::vector<std::string>& warnings) {
  if (from == to) return;
  warnings.push_back(fmt::format("after {}, {} was changed from {} to {}",
                                 base::counted(pairs, "pair"), what, from, to));
}

std::string percent_value(double percent) {
  return fmt::format("{:g} %", percent);
}

std::vector<std::string> warnings_about_changes(const std::vector<RuleChange>& changes) {
  std::vector<std::string> warnings;
  for (const RuleChange& change : changes) {
    if (change.pairs == 0) continue;
    const Rules& from = change.from;
    const Rules& to = change.to;
    const auto add = [&](std::string_view what, const std::string& before,
                         const std::string& after) {
      warn_about_change(change.pairs, what, before, after, warnings);
    };
    add("the margin", percent_value(from.judgement.margin_pct),
        percent_value(to.judgement.margin_pct));
    add("what is better", from.judgement.more_is_better ? "more" : "less",
        to.judgement.more_is_better ? "more" : "less");
    add("the half-width to stop at", percent_value(from.stop.half_width_pct),
        percent_value(to.stop.half_width_pct));
    add("the minimum number of pairs", std::to_string(from.stop.min_pairs),
        std::to_string(to.stop.min_pairs));
    add("the maximum number of pairs", std::to_string(from.stop.max_pairs),
        std::to_string(to.stop.max_pairs));
  }
  return warnings;
}

std::vector<std::string> warnings_about_sessions(const std::vector<SessionRecord>& sessions) {
  std::vector<std::string> warnings;
  for (std::size_t i = 1; i < sessions.size(); ++i) {
    const SessionRecord& before = sessions[i - 1];
    const SessionRecord& now = sessions[i];
    const auto add = [&](const char* what, const std::string& from, const std::string& to) {
      if (from == to) return;
      warnings.push_back(fmt::format("it was resumed at {} with another {}: {} instead of {}",
                                     now.begun, what, to.empty() ? "none" : to,
                                     from.empty() ? "none" : from));
    };
    add("host", before.host, now.host);
    add("machine", before.machine, now.machine);
    add("kernel", before.kernel, now.kernel);
    add("GPU driver", before.driver, now.driver);
    add("assay", before.assay, now.assay);
    add("commit of the project", before.project, now.project);
  }
  return warnings;
}

void warn_about_effect(const std::string& name, const Effect& effect,
                       std::vector<std::string>& warnings) {
  const Estimate& e = effect.estimate;
  if (e.method == Method::kNone) return;
  if (e.widening > kWidenedMuch) {
    warnings.push_back(fmt::format(
        "{}: successive differences are correlated (rank correlation {:.2f}): {} pairs are worth "
        "{:.0f}, and the interval is {:.1f} times as wide",
        name, e.autocorrelation, e.pairs, e.effective_pairs(), e.widening));
  }
  if (effect.drift.p < kSignificant) {
    warnings.push_back(
        fmt::format("{}: the effect drifts, by {:+.2f} % from the first half to the "
                    "second: the estimate is an average over time",
                    name, percent(effect.drift.change)));
  }
  if (!effect.outliers.empty()) {
    const bool one = effect.outliers.size() == 1;
    warnings.push_back(fmt::format("{}: {} of {} {}; {} included", name, effect.outliers.size(),
                                   base::counted(e.pairs, "pair"),
                                   one ? "is an outlier" : "are outliers",
                                   one ? "it is" : "they are"));
  }
  const double apart = std::abs(effect.mean - e.centre);
  if (apart > kEqualInPrint && apart > kFarApart * e.interval.half_width()) {
    warnings.push_back(
        fmt::format("{}: the mean, {:+.2f} %, is far from the centre: rare slow runs dominate it, "
                    "but the verdict is about typical runs",
                    name, percent(effect.mean)));
  }
}

// Of every pair of arms: the groups of two arms need not show in their differences from the first.
void warn_about_groups(const Experiment& experiment, const Findings& f,
                       std::vector<std::string>& warnings) {
  const auto check = [&](std::size_t from, std::size_t arm) {
    const auto groups = two_groups(differences(f.blocks, from, arm), kGroupsApart);
    if (!groups) return;
    warnings.push_back(fmt::format(
        "{} against {}: the differences are in two groups, about {:+.2f} % ({}) and {:+.2f} % "
        "({}): "
        "the estimate between them describes neither; look for what changes from run to run",
        experiment.name_of(arm), experiment.name_of(from), percent(groups->low),
        base::counted(static_cast<std::int64_t>(groups->low_count), "pair"), percent(groups->high),
        base::counted(static_cast<std::int64_t>(groups->high_count), "pair")));
  };
  for (const Comparison& comparison : f.comparisons) check(0, comparison.arm);
  for (const ArmPair& pair : f.ranking.pairs) {
    if (pair.from != 0) check(pair.from, pair.arm);
  }
}

// Earlier interim analyses, changed rules and changed machines.
void warn_about_history(const Measured& measured, double alpha_share, const Findings& f,
                        std::vector<std::string>& warnings) {
  // The last analysis is the current one, unless runs were added after it.
  const bool is_current =
      !measured.analyses.empty() && measured.analyses.back().run == measured.last_run();
  const auto before = static_cast<std::int64_t>(measured.analyses.size()) - (is_current ? 1 : 0);
  if (before > 0 && alpha_share > 0 && alpha_share < 1) {
    const ConfidenceInterval p = percent(f.deciding().judged.interval);
    warnings.push_back(fmt::format(
        "the estimate was reported {} before (interim analyses), so the verdict uses a {:.5g} % "
        "interval, {:+.2f} % to {:+.2f} %",
        base::counted(before, "time"), 100 * (1 - measured.experiment.alpha() * alpha_share), p.low,
        p.high));
  } else if (before > 0) {
    warnings.push_back(fmt::format(
        "the estimate was reported {} before (interim analyses), {}", base::counted(before, "time"),
        alpha_share > 0 ? "none of which could decide" : "and this one cannot decide either"));
  }
  for (const std::string& warning : warnings_about_changes(measured.changes)) {
    warnings.push_back(warning);
  }
  for (const std::string& warning : warnings_about_sessions(measured.sessions)) {
    warnings.push_back(warning);
  }
}

// A pattern that finds too few steps measures something else.
void warn_about_steps(const Experiment& experiment, const Findings& f,
                      std::vector<std::string>& warnings) {
  if (!experiment.steps) return;
  for (const ArmSummary& arm : f.arms) {
    if (arm.runs == 0 || arm.least_steps >= kFewSteps) continue;
    warnings.push_back(fmt::format("{}: only {} found in a run; does the pattern find all?",
                                   experiment.name_of(arm.arm),
                                   base::counted(arm.least_steps, "step")));
  }
  for (const Comparison& comparison : f.comparisons) {
    if (comparison.unmatched == 0) continue;
    warnings.push_back(fmt::format("{}: {} without a step in common, not counted",
                                   experiment.name_of(comparison.arm),
                                   base::counted(comparison.unmatched, "pair")));
  }
}

}  // namespace

std::vector<std::string> warnings_about(const Measured& measured, double alpha_share,
                                        const Findings& f) {
  const Experiment& experiment = measured.experiment;
  std::vector<std::string> warnings;
  warn_about_history(measured, alpha_share, f, warnings);
  warn_about_steps(experiment, f, warnings);
  for (const Comparison& comparison : f.comparisons) {
    warn_about_effect(experiment.name_of(comparison.arm), comparison.effect, warnings);
  }
  warn_about_groups(experiment, f, warnings);
  if (f.second_baseline) {
    const Estimate& e = f.second_baseline->effect.estimate;
    if (e.method != Method::kNone && !e.interval.contains(0)) {
      warnings.push_back(fmt::format(
          "two equal arms differ by {:+.2f} %: this happens by chance in one experiment of "
          "twenty; if it happens again, do not trust this machine",
          percent(e.centre)));
    }
  }
  if (f.marked > 0) {
    std::set<std::string> kinds;
    for (const Block& block : f.blocks.complete)
      kinds.insert(block.marks.begin(), block.marks.end());
    warnings.push_back(fmt::format("the machine was disturbed in {} of {} blocks, e.g. {}",
                                   f.marked, f.blocks.complete.size(), *kinds.begin()));
  }
  if (f.blocks.cut_short > 0) {
    warnings.push_back(base::counted(f.blocks.cut_short, "block") + " cut short and not paired");
  }
  if (!measured.failures.empty()) {
    const FailedRun& last = measured.failures.back();
    warnings.push_back(
        fmt::format("{} failed and not counted, the last one as run {}, arm {}",
                    base::counted(static_cast<std::int64_t>(measured.failures.size()), "run"),
                    last.run, experiment.name_of(last.arm)));
  }
  return warnings;
}

}  // namespace assay::compare
