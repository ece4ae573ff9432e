#include "assay/compare/print.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/figure.h"
#include "base/number.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/units.h"
#include "report/numbers.h"

namespace assay::cli {
namespace {

using compare::Comparison;
using compare::ConfidenceInterval;
using compare::Effect;
using compare::Estimate;
using compare::Experiment;
using compare::IntervalVerdict;

constexpr double kFineEffect = 0.1;
constexpr std::size_t kArmCommandColumns = 40;

std::string confidence(const Effect& effect) {
  return fmt::format("{:.4g} %", 100 * (1 - effect.alpha));
}

// "+2.00 %", "1.020 × slower", "+1.90 %", "+2.10 %"
std::vector<std::string> effect_cells(const Experiment& e, double centre,
                                      const ConfidenceInterval& interval) {
  const ConfidenceInterval p = compare::percent(interval);
  return {report::signed_percent(compare::percent(centre)), compare::ratio_text(e, centre),
          report::signed_percent(p.low), report::signed_percent(p.high)};
}

std::vector<std::string> estimate_cells(const Experiment& e, const Estimate& estimate) {
  if (estimate.method == compare::Method::kNone) return {"—", "—", "—", "—"};
  return effect_cells(e, estimate.centre, estimate.interval);
}

void add_row(base::Table& table, std::vector<std::string> row,
             const std::vector<std::string>& more) {
  row.insert(row.end(), more.begin(), more.end());
  table.row(std::move(row));
}

// "199", or "198 to 199" where runs differ.
std::string steps_found(const compare::ArmSummary& arm) {
  if (arm.least_steps == arm.most_steps) return base::grouped(arm.most_steps);
  return fmt::format("{} to {}", base::grouped(arm.least_steps), base::grouped(arm.most_steps));
}

void print_arms(const Session& session, const ExperimentResult& c) {
  const Experiment& e = c.measured.experiment;
  std::vector<std::string> titles = {"arm", "command", "runs", "median", "least", "most", "noise"};
  if (e.steps) titles.insert(titles.begin() + 3, "steps");
  base::Table table(titles);
  const bool terminal = base::terminal_columns(STDOUT_FILENO).has_value();
  for (const compare::ArmSummary& arm : c.findings.arms) {
    const std::string& command = e.arm_of(arm.arm).command;
    std::vector<std::string> row = {
        e.name_of(arm.arm),
        terminal ? base::shortened_middle(command, kArmCommandColumns) : command,
        base::grouped(arm.runs),
        value_text(e, arm, arm.median),
        value_text(e, arm, arm.low),
        value_text(e, arm, arm.high),
        arm.runs > 0 ? fmt::format("{:.2f} %", arm.deviation_pct) : "—"};
    if (e.steps) row.insert(row.begin() + 3, steps_found(arm));
    table.row(row);
  }
  session.print(table);
}

// Six digits: two medians that differ by a thousandth must not look the same.
std::string metric_value(double value) {
  constexpr double kWhole = 1e6;
  if (std::abs(value) >= kWhole) return base::figure(value);
  return base::exact_figure(
      base::parse_number<double>(fmt::format("{:.6g}", value)).value_or(value));
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
  session.print(fmt::format(
      "quality: {:+.4g} on {:.6g} (from {:+.4g} to {:+.4g}), {}\n", q.estimate.centre, q.baseline,
      q.estimate.interval.low, q.estimate.interval.high,
      comparison.quality_within_noise.value_or(false) ? "within its noise" : "BEYOND ITS NOISE"));
}

// "2 pairs"; with more than anybody would run, only that.
std::string pairs_needed(double pairs) {
  constexpr double kTooMany = 1e6;
  if (pairs >= kTooMany) return "more than a million pairs";
  return base::counted(static_cast<std::int64_t>(pairs), "pair");
}

void print_comparison(const Session& session, const ExperimentResult& c,
                      const Comparison& comparison) {
  const Experiment& e = c.measured.experiment;
  const Effect& effect = comparison.effect;
  const std::string title =
      fmt::format("{} against {}", e.name_of(comparison.arm), e.arms.front().name);
  base::Table table({title, "effect", "ratio", confidence(effect) + " from", "to"});
  add_row(table, {method_name(effect.estimate)}, estimate_cells(e, effect.estimate));
  if (effect.student && effect.estimate.method == compare::Method::kSignedRank)
    add_row(table, {"mean, Student's t"}, effect_cells(e, effect.mean, *effect.student));
  if (effect.bootstrap) {
    add_row(table, {"mean, bootstrap (BCa)"}, effect_cells(e, effect.mean, *effect.bootstrap));
  }
  if (comparison.whole_runs) {
    add_row(table, {"whole runs, wall time"}, estimate_cells(e, comparison.whole_runs->estimate));
  }
  if (c.findings.second_baseline) {
    add_row(table, {fmt::format("noise: {}' against {}", e.arms.front().name, e.arms.front().name)},
            estimate_cells(e, c.findings.second_baseline->effect.estimate));
  }
  session.print("\n");
  session.print(table);
  print_parts(session, comparison);
  session.print(fmt::format("\n{} was higher in {} and lower in {} of {}",
                            e.name_of(comparison.arm), base::grouped(effect.signs.more),
                            base::grouped(effect.signs.less),
                            base::counted(effect.estimate.pairs, "pair")));
  if (comparison.steps > 0) {
    session.print(fmt::format(", {} steps in common", base::grouped(comparison.steps)));
  }
  const double margin = std::abs(e.judgement.margin_pct);
  const auto fine = compare::pairs_to_detect(effect.estimate, kFineEffect, effect.alpha);
  if (const auto pairs =
          compare::pairs_to_detect(effect.estimate, margin > 0 ? margin : 1, effect.alpha)) {
    session.print(fmt::format("; detecting {:g} % takes {}, {:g} % {}", margin > 0 ? margin : 1,
                              pairs_needed(*pairs), kFineEffect, pairs_needed(*fine)));
  }
  session.print("\n");
  print_quality(session, comparison);
}

// All pairs of three or more arms; of many only neighbours in the order.
void print_ranking(const Session& session, const ExperimentResult& c) {
  constexpr std::size_t kMostPairs = 15;
  const Experiment& e = c.measured.experiment;
  const compare::Ranking& ranking = c.findings.ranking;
  if (ranking.empty()) return;
  std::vector<std::size_t> order;
  for (const auto& group : ranking.groups) order.insert(order.end(), group.begin(), group.end());
  const auto neighbours = [&](const compare::ArmPair& pair) {
    const auto at = std::ranges::find(order, pair.from) - std::ranges::find(order, pair.arm);
    return at == 1 || at == -1;
  };
  base::Table table({"all pairs", "effect", "ratio",
                     fmt::format("{:.4g} % from", 100 * (1 - ranking.pair_alpha)), "to", "differ"});
  const bool all = ranking.pairs.size() <= kMostPairs;
  for (const compare::ArmPair& pair : ranking.pairs) {
    if (!all && !neighbours(pair)) continue;
    std::vector<std::string> cells = estimate_cells(e, pair.estimate);
    cells.emplace_back(pair.differ ? "yes" : "no");
    add_row(table, {fmt::format("{} against {}", e.name_of(pair.arm), e.name_of(pair.from))},
            cells);
  }
  session.print("\n");
  session.print(table);
  session.print(fmt::format(
      "{}differ: Holm's procedure; the {} intervals together have 95 % coverage\n",
      all ? "" : "neighbours in the order, all others with --json; ", ranking.pairs.size()));
}

std::string verdict_line(const ExperimentResult& c) {
  const Experiment& e = c.measured.experiment;
  const Comparison& deciding = c.findings.deciding();
  const double margin = e.judgement.margin_pct * (e.judgement.more_is_better ? -1 : 1);
  const std::string about = fmt::format("a margin of {:g} %", margin);
  std::string reason;
  switch (c.findings.verdict) {
    case IntervalVerdict::kPass:
      reason = fmt::format(
          "{}; worse than {:+g} % is excluded",
          report::signed_percent(compare::percent(deciding.effect.estimate.centre)), margin);
      break;
    case IntervalVerdict::kFail:
      reason = "the interval is beyond " + about;
      break;
    case IntervalVerdict::kInconclusive:
      reason = "the interval includes values on both sides of " + about;
      break;
    case IntervalVerdict::kNotJudged:
      return "";
  }
  if (c.stop == compare::StopReason::kNo)
    reason = "interrupted, so there is no verdict about " + about;
  if (c.stop == compare::StopReason::kFailed) reason = "an arm failed";
  const bool named = c.findings.comparisons.size() > 1 && c.stop != compare::StopReason::kFailed;
  return fmt::format("\n{}: {}{}\n", c.verdict_text(c.findings.verdict),
                     named ? e.name_of(deciding.arm) + ": " : "", reason);
}

// What the columns of a scan's table mean.
std::string scan_foot(const ExperimentResult& c) {
  const Experiment& e = c.measured.experiment;
  std::string foot = "noise: the robust deviation of single runs";
  if (e.arms.size() > 2) {
    foot += fmt::format("; {}: so that the {} intervals together have 95 % coverage",
                        confidence(c.findings.comparisons.front().effect), e.arms.size() - 1);
  }
  if (c.findings.second_baseline) {
    foot +=
        fmt::format("\n{0}': {0} run a second time in every block; its difference is only noise",
                    e.arms.front().name);
  }
  return foot + "\n";
}

// The arms of a scan in one table, each against the first.
void print_scanned_arms(const Session& session, const ExperimentResult& c) {
  const Experiment& e = c.measured.experiment;
  std::vector<std::string> titles = e.scanned;
  for (const char* title : {"runs", "median", "noise"}) titles.emplace_back(title);
  titles.push_back("against " + e.arms.front().name);
  titles.emplace_back("ratio");
  titles.push_back(confidence(c.findings.comparisons.front().effect) + " from");
  titles.emplace_back("to");
  base::Table table(titles);
  const auto base_cells = [&](std::size_t arm, std::vector<std::string> cells) {
    const compare::ArmSummary& summary = c.findings.arms[arm];
    cells.push_back(base::grouped(summary.runs));
    cells.push_back(value_text(e, summary, summary.median));
    cells.push_back(summary.runs > 0 ? fmt::format("{:.2f} %", summary.deviation_pct) : "—");
    return cells;
  };
  add_row(table, base_cells(0, e.arms.front().values), {"", "", "", ""});
  for (const Comparison& comparison : c.findings.comparisons) {
    add_row(table, base_cells(comparison.arm, e.arms[comparison.arm].values),
            estimate_cells(e, comparison.effect.estimate));
  }
  if (c.findings.second_baseline) {
    std::vector<std::string> values = e.arms.front().values;
    values.front() += "'";
    add_row(table, base_cells(e.arms.size(), std::move(values)),
            estimate_cells(e, c.findings.second_baseline->effect.estimate));
  }
  session.print(table);
  session.print("\n" + compare::best_value_text(e, c.findings) + "\n");
  session.print(scan_foot(c));
}

void print_notes(const Session& session, const ExperimentResult& c) {
  std::string notes;
  if (c.findings.blocks.warm_up > 0) {
    notes += fmt::format("- {} at the beginning {} warm-up\n",
                         base::counted(c.findings.blocks.warm_up, "block"),
                         c.findings.blocks.warm_up == 1 ? "was" : "were");
  }
  for (const std::string& warning : c.preflight) notes += "- before it began: " + warning + "\n";
  for (const std::string& warning : c.findings.warnings) notes += "- " + warning + "\n";
  notes += fmt::format("- it ended because {}; every run is in {}\n", to_text(c.stop),
                       base::printable(c.directory));
  session.print(notes);
}

}  // namespace

std::string value_text(const Experiment& e, const compare::ArmSummary& arm, double value) {
  if (arm.runs == 0) return "—";
  if (e.steps) return base::to_text(base::Seconds(value * e.step_seconds));
  return e.is_time() ? base::to_text(base::Seconds(value)) : metric_value(value);
}

void print_experiment(const Session& session, const ExperimentResult& c) {
  if (!c.measured.experiment.scanned.empty()) {
    print_scanned_arms(session, c);
  } else {
    print_arms(session, c);
    for (const Comparison& comparison : c.findings.comparisons) {
      print_comparison(session, c, comparison);
    }
    print_ranking(session, c);
    if (const std::string line = compare::ranking_text(c.measured.experiment, c.findings.ranking);
        !line.empty()) {
      session.print("\n" + line + "\n");
    }
  }
  session.print(verdict_line(c));
  print_notes(session, c);
}

void print_scan(const Session& session, const ScanResult& scan) {
  std::vector<std::string> titles = scan.parameters;
  for (const char* title : {"arm", "pairs", "median", "baseline", "effect", "ratio"}) {
    titles.emplace_back(title);
  }
  titles.push_back(confidence(scan.points.front().result->findings.comparisons.front().effect) +
                   " from");
  titles.emplace_back("to");
  titles.emplace_back("verdict");
  base::Table table(titles);
  for (const ScanResult::Point& point : scan.points) {
    const compare::Findings& f = point.result->findings;
    const Experiment& e = point.result->measured.experiment;
    for (const Comparison& comparison : f.comparisons) {
      std::vector<std::string> row = point.values;
      row.push_back(e.name_of(comparison.arm));
      row.push_back(base::grouped(comparison.effect.estimate.pairs));
      row.push_back(value_text(e, f.arms[comparison.arm], f.arms[comparison.arm].median));
      row.push_back(value_text(e, f.arms[0], f.arms[0].median));
      for (std::string& cell : estimate_cells(e, comparison.effect.estimate)) {
        row.push_back(std::move(cell));
      }
      row.emplace_back(point.result->verdict_text(comparison.verdict));
      table.row(std::move(row));
    }
  }
  session.print(table);
  std::string notes = "\n";
  for (const ScanResult::Point& point : scan.points) {
    for (const std::string& warning : point.result->preflight) {
      notes += fmt::format("- {}: before it began: {}\n", point.name, warning);
    }
    for (const std::string& warning : point.result->findings.warnings) {
      notes += fmt::format("- {}: {}\n", point.name, warning);
    }
  }
  session.print(notes + fmt::format("- every run is in {}\n", base::printable(scan.directory)));
}

}  // namespace assay::cli
