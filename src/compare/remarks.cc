#include "compare/remarks.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace assay::compare {
namespace {

constexpr double kSurprising = 0.01;  // of a check that should not fail
constexpr double kWidenedMuch = 1.2;
constexpr double kBothAgree = 3;  // half-widths between mean and centre
// Of ln(B/A): two decimals of a percentage would be the same. Where all runs are equal, the
// half-width is 0 and rounding is all that is left.
constexpr double kSameInPrint = 5e-5;
constexpr std::int64_t kHardlySteps = 4;  // a training job that prints no more is hardly one

void remark_on_change(std::int64_t pairs, std::string_view what, const std::string& from,
                      const std::string& to, std::vector<std::string>& remarks) {
  if (from == to) return;
  remarks.push_back(fmt::format("after {} pair{}, {} was changed from {} to {}", pairs,
                                pairs == 1 ? "" : "s", what, from, to));
}

std::string percent_words(double percent) {
  return fmt::format("{:g} %", percent);
}

std::vector<std::string> remarks_on_changes(const std::vector<RuleChange>& changes) {
  std::vector<std::string> remarks;
  for (const RuleChange& change : changes) {
    if (change.pairs == 0) continue;
    const Rules& from = change.from;
    const Rules& to = change.to;
    const auto say = [&](std::string_view what, const std::string& before,
                         const std::string& after) {
      remark_on_change(change.pairs, what, before, after, remarks);
    };
    say("the margin", percent_words(from.judgement.margin_pct),
        percent_words(to.judgement.margin_pct));
    say("what is better", from.judgement.more_is_better ? "more" : "less",
        to.judgement.more_is_better ? "more" : "less");
    say("the half-width to stop at", percent_words(from.stop.half_width_pct),
        percent_words(to.stop.half_width_pct));
    say("the least number of pairs", std::to_string(from.stop.min_pairs),
        std::to_string(to.stop.min_pairs));
    say("the largest number of pairs", std::to_string(from.stop.max_pairs),
        std::to_string(to.stop.max_pairs));
  }
  return remarks;
}

std::vector<std::string> remarks_on_sittings(const std::vector<Sitting>& sittings) {
  std::vector<std::string> remarks;
  for (std::size_t i = 1; i < sittings.size(); ++i) {
    const Sitting& before = sittings[i - 1];
    const Sitting& now = sittings[i];
    const auto say = [&](const char* what, const std::string& from, const std::string& to) {
      if (from == to) return;
      remarks.push_back(fmt::format("it went on {} with another {}: {} in the place of {}",
                                    now.begun, what, to.empty() ? "none" : to,
                                    from.empty() ? "none" : from));
    };
    say("host", before.host, now.host);
    say("machine", before.machine, now.machine);
    say("kernel", before.kernel, now.kernel);
    say("GPU driver", before.driver, now.driver);
    say("assay", before.assay, now.assay);
    say("commit of the project", before.project, now.project);
  }
  return remarks;
}

void remark_on_effect(const std::string& name, const Effect& effect,
                      std::vector<std::string>& remarks) {
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
  const double apart = std::abs(effect.mean - e.centre);
  if (apart > kSameInPrint && apart > kBothAgree * e.interval.half_width()) {
    remarks.push_back(
        fmt::format("{}: the mean, {:+.2f} %, is far from the centre: rare slow runs "
                    "decide it, and the verdict is about the usual ones",
                    name, percent(effect.mean)));
  }
}

// How it came to be judged: what was seen, changed and exchanged before.
void remark_on_history(const Measured& measured, double share, const Findings& f,
                       std::vector<std::string>& remarks) {
  // The last look is this one, unless runs came after it.
  const bool this_one = !measured.looks.empty() && measured.looks.back().run == measured.last_run();
  const auto before = static_cast<std::int64_t>(measured.looks.size()) - (this_one ? 1 : 0);
  if (before > 0 && share > 0 && share < 1) {
    const Interval p = percent(f.deciding().judged.interval);
    remarks.push_back(fmt::format(
        "the estimate was looked at {} before, and every look is a chance to be wrong: the verdict "
        "is by a {:.5g} % interval, {:+.2f} % to {:+.2f} %",
        counted(before, "time"), 100 * (1 - measured.experiment.alpha() * share), p.low, p.high));
  } else if (before > 0) {
    remarks.push_back(fmt::format(
        "the estimate was looked at {} before, {}", counted(before, "time"),
        share > 0 ? "none of which could decide" : "and this look decides nothing either"));
  }
  for (const std::string& remark : remarks_on_changes(measured.changes)) {
    remarks.push_back(remark);
  }
  for (const std::string& remark : remarks_on_sittings(measured.sittings)) {
    remarks.push_back(remark);
  }
}

// What steps were found: a pattern that finds too few measures something else, in silence.
void remark_on_steps(const Experiment& experiment, const Findings& f,
                     std::vector<std::string>& remarks) {
  if (!experiment.steps) return;
  for (const ArmSummary& arm : f.arms) {
    if (arm.runs == 0 || arm.least_steps >= kHardlySteps) continue;
    remarks.push_back(fmt::format("{}: only {} found in a run; does the pattern find all?",
                                  experiment.name_of(arm.arm), counted(arm.least_steps, "step")));
  }
  for (const Comparison& comparison : f.comparisons) {
    if (comparison.unmatched == 0) continue;
    remarks.push_back(fmt::format("{}: {} without a step in common, and not counted",
                                  experiment.name_of(comparison.arm),
                                  counted(comparison.unmatched, "pair")));
  }
}

}  // namespace

std::vector<std::string> remarks_on(const Measured& measured, double share, const Findings& f) {
  const Experiment& experiment = measured.experiment;
  std::vector<std::string> remarks;
  remark_on_history(measured, share, f, remarks);
  remark_on_steps(experiment, f, remarks);
  for (const Comparison& comparison : f.comparisons) {
    remark_on_effect(experiment.name_of(comparison.arm), comparison.effect, remarks);
  }
  if (f.second_baseline) {
    const Estimate& e = f.second_baseline->effect.estimate;
    if (e.method != Method::kNone && !e.interval.contains(0)) {
      remarks.push_back(
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
    remarks.push_back(fmt::format("the machine was disturbed in {} of {} blocks, e.g. {}", f.marked,
                                  f.blocks.complete.size(), *kinds.begin()));
  }
  if (f.blocks.cut_short > 0) {
    remarks.push_back(counted(f.blocks.cut_short, "block") + " cut short and not paired");
  }
  if (!measured.failures.empty()) {
    const FailedRun& last = measured.failures.back();
    remarks.push_back(
        fmt::format("{} failed and not counted, the last as run {}, arm {}",
                    counted(static_cast<std::int64_t>(measured.failures.size()), "run"), last.run,
                    experiment.name_of(last.arm)));
  }
  return remarks;
}

}  // namespace assay::compare
