#include "assay/compare/print.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace assay::cli {
namespace {

using compare::Comparison;
using compare::Effect;
using compare::Estimate;
using compare::Experiment;
using compare::Interval;

constexpr double kFineEffect = 0.1;
constexpr std::size_t kArmCommandColumns = 40;

std::string amount(const Experiment& e, double value) {
  using compare::MetricKind;
  if (e.steps) return base::to_text(base::Seconds(value * e.step_seconds));
  const bool seconds = e.metric.kind == MetricKind::kWall || e.metric.kind == MetricKind::kCpu;
  return seconds ? base::to_text(base::Seconds(value)) : fmt::format("{:.6g}", value);
}

std::string confidence(const Effect& effect) {
  return fmt::format("{:.4g} %", 100 * (1 - effect.alpha));
}

void effect_row(base::Table& table, const std::string& name, double centre,
                const Interval& interval) {
  const Interval p = compare::percent(interval);
  table.row(
      {name, percent_text(compare::percent(centre)), percent_text(p.low), percent_text(p.high)});
}

void estimate_row(base::Table& table, const std::string& name, const Estimate& estimate) {
  if (estimate.method == compare::Method::kNone) {
    table.row({name, "—", "—", "—"});
  } else {
    effect_row(table, name, estimate.centre, estimate.interval);
  }
}

// "199", or "198 to 199" where runs differ.
std::string steps_found(const compare::ArmSummary& arm) {
  if (arm.least_steps == arm.most_steps) return base::grouped(arm.most_steps);
  return fmt::format("{} to {}", base::grouped(arm.least_steps), base::grouped(arm.most_steps));
}

void print_arms(const Session& session, const Compared& c) {
  const Experiment& e = c.measured.experiment;
  std::vector<std::string> titles = {"arm", "command", "runs", "median", "least", "most", "noise"};
  if (e.steps) titles.insert(titles.begin() + 3, "steps");
  base::Table table(titles);
  for (const compare::ArmSummary& arm : c.findings.arms) {
    std::vector<std::string> row = {
        e.name_of(arm.arm),
        base::shortened_middle(e.arm_of(arm.arm).command, kArmCommandColumns),
        base::grouped(arm.runs),
        amount(e, arm.median),
        amount(e, arm.low),
        amount(e, arm.high),
        fmt::format("{:.2f} %", arm.deviation_pct)};
    if (e.steps) row.insert(row.begin() + 3, steps_found(arm));
    table.row(row);
  }
  session.print(table);
}

std::string method_name(const Estimate& estimate) {
  switch (estimate.method) {
    case compare::Method::kSignedRank:
      return "Hodges-Lehmann, signed rank";
    case compare::Method::kStudent:
      return "mean, Student's t (few pairs)";
    case compare::Method::kNone:
      break;
  }
  return "too few pairs";
}

void shift_row(base::Table& table, const std::string& name,
               const std::optional<compare::Shift>& shift) {
  if (!shift || shift->estimate.method == compare::Method::kNone) return;
  const auto text = [](double s) {
    return fmt::format("{}{}", s < 0 ? "-" : "+", base::to_text(base::Seconds(std::abs(s))));
  };
  table.row({name, base::to_text(base::Seconds(shift->baseline)), text(shift->estimate.centre),
             text(shift->estimate.interval.low), text(shift->estimate.interval.high)});
}

void print_parts(const Session& session, const Comparison& comparison) {
  base::Table table({"outside steps", "baseline", "added", "from", "to"});
  shift_row(table, "start-up", comparison.startup_s);
  shift_row(table, "after the last step", comparison.after_s);
  shift_row(table, "all of it", comparison.outside_s);
  if (table.empty()) return;
  session.print("\n");
  session.print(table);
}

void print_quality(const Session& session, const Comparison& comparison) {
  if (!comparison.quality || comparison.quality->estimate.method == compare::Method::kNone) return;
  const compare::Shift& q = *comparison.quality;
  session.print(
      fmt::format("quality: {:+.4g} on {:.6g} (from {:+.4g} to {:+.4g}), {}\n", q.estimate.centre,
                  q.baseline, q.estimate.interval.low, q.estimate.interval.high,
                  comparison.quality_within_noise.value_or(false) ? "within its noise"
                                                                  : "MORE THAN ITS NOISE"));
}

void print_comparison(const Session& session, const Compared& c, const Comparison& comparison) {
  const Experiment& e = c.measured.experiment;
  const Effect& effect = comparison.effect;
  const std::string title =
      fmt::format("{} against {}", e.name_of(comparison.arm), e.arms.front().name);
  base::Table table({title, "effect", confidence(effect) + " from", "to"});
  estimate_row(table, method_name(effect.estimate), effect.estimate);
  if (effect.student && effect.estimate.method == compare::Method::kSignedRank)
    effect_row(table, "mean, Student's t", effect.mean, *effect.student);
  if (effect.bootstrap) effect_row(table, "mean, bootstrap (BCa)", effect.mean, *effect.bootstrap);
  if (comparison.whole_runs) {
    estimate_row(table, "whole runs, wall time", comparison.whole_runs->estimate);
  }
  if (c.findings.second_baseline) {
    estimate_row(table,
                 fmt::format("noise: {}' against {}", e.arms.front().name, e.arms.front().name),
                 c.findings.second_baseline->effect.estimate);
  }
  session.print("\n");
  session.print(table);
  print_parts(session, comparison);
  session.print(fmt::format("\n{} more in {}, less in {} of {} pairs", e.name_of(comparison.arm),
                            effect.signs.more, effect.signs.less, effect.estimate.pairs));
  if (comparison.steps > 0) {
    session.print(fmt::format(", {} steps in common", base::grouped(comparison.steps)));
  }
  const double margin = std::abs(e.judgement.margin_pct);
  const auto fine = compare::pairs_to_detect(effect.estimate, kFineEffect, effect.alpha);
  if (const auto pairs =
          compare::pairs_to_detect(effect.estimate, margin > 0 ? margin : 1, effect.alpha)) {
    session.print(fmt::format("; to see {:g} % takes {} pairs, {:g} % {}", margin > 0 ? margin : 1,
                              base::grouped(static_cast<std::int64_t>(*pairs)), kFineEffect,
                              base::grouped(static_cast<std::int64_t>(*fine))));
  }
  session.print("\n");
  print_quality(session, comparison);
}

std::string verdict_line(const Compared& c) {
  const Experiment& e = c.measured.experiment;
  const std::string margin = fmt::format("a margin of {:g} %{}", e.judgement.margin_pct,
                                         e.judgement.more_is_better ? " less" : "");
  const char* reason = nullptr;
  switch (c.findings.verdict) {
    case compare::Verdict::kPass:
      reason = "the interval is within";
      break;
    case compare::Verdict::kFail:
      reason = "the interval is beyond";
      break;
    case compare::Verdict::kInconclusive:
      reason = "the interval does not decide about";
      break;
  }
  if (c.stop == compare::Stop::kNo) reason = "cut off by hand, which decides nothing about";
  if (c.stop == compare::Stop::kFailed) reason = "an arm failed, which decides nothing about";
  const std::string arm =
      c.findings.comparisons.size() == 1 ? "" : e.name_of(c.findings.deciding().arm) + ": ";
  return fmt::format("\n{}: {}{} {}\n", to_text(c.findings.verdict), arm, reason, margin);
}

}  // namespace

std::string percent_text(double percent) {
  return fmt::format("{:+.2f} %", percent);
}

void print_compared(const Session& session, const Compared& c) {
  print_arms(session, c);
  for (const Comparison& comparison : c.findings.comparisons) {
    print_comparison(session, c, comparison);
  }
  session.print(verdict_line(c));
  std::string notes;
  if (c.findings.blocks.warm_up > 0) {
    notes += fmt::format("- {} at the beginning {} warm-up\n",
                         compare::counted(c.findings.blocks.warm_up, "block"),
                         c.findings.blocks.warm_up == 1 ? "was" : "were");
  }
  for (const std::string& remark : c.preflight) notes += "- before it began: " + remark + "\n";
  for (const std::string& remark : c.findings.remarks) notes += "- " + remark + "\n";
  notes += fmt::format("- it ended because {}; every run is in {}\n", to_text(c.stop),
                       base::printable(c.directory));
  session.print(notes);
}

}  // namespace assay::cli
