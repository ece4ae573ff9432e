#include "report/experiment_part.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "report/experiment_charts.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

using compare::Comparison;
using compare::Estimate;
using compare::Experiment;

Outcome outcome_of_verdict(compare::IntervalVerdict verdict) {
  switch (verdict) {
    case compare::IntervalVerdict::kPass:
      return Outcome::kGood;
    case compare::IntervalVerdict::kFail:
      return Outcome::kBad;
    case compare::IntervalVerdict::kInconclusive:
    case compare::IntervalVerdict::kNotJudged:
      break;
  }
  return Outcome::kOpen;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "—" : text;
}

std::string margin_text(const Experiment& e) {
  if (!e.judgement.judged) return "any effect";  // a scan without a margin
  return fmt::format("{:g} %{}", e.judgement.margin_pct,
                     e.judgement.more_is_better ? " less" : " more");
}

// The arm's name if it was given one, else its command: "A" and "B" identify nothing.
std::string arm_title(const Experiment& e, std::size_t arm) {
  constexpr std::size_t kMostCommand = 60;  // columns
  const std::string name = e.name_of(arm);
  const bool default_name = name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z';
  if (!default_name) return name;
  return base::shortened_middle(base::printable(e.arm_of(arm).command), kMostCommand);
}

std::string against(const Experiment& e, const Comparison& comparison) {
  return fmt::format("{} against {}", e.name_of(comparison.arm), e.arms.front().name);
}

std::string interval_text(const Estimate& estimate) {
  if (estimate.method == compare::Method::kNone) return "too few pairs for an interval";
  const compare::ConfidenceInterval p = compare::percent(estimate.interval);
  return fmt::format("{} to {}", signed_percent(p.low), signed_percent(p.high));
}

// What was allowed, what was measured, and the verdict.
Table goals_table(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  Table table{"Goals", {"what", "verdict", "measured", "ratio", "interval", "goal", "pairs"}};
  const auto add = [&](const Comparison& comparison, const std::string& name, Cell verdict,
                       const std::string& goal) {
    const Estimate& estimate = comparison.effect.estimate;
    const double effect = compare::percent(estimate.centre);
    table.rows.push_back(
        {Cell(name), std::move(verdict), Cell(signed_percent(effect), effect),
         Cell(or_dash(ratio_text(effect, is_time(e))), effect), Cell(interval_text(estimate)),
         Cell(goal), Cell(base::grouped(estimate.pairs), static_cast<double>(estimate.pairs))});
  };
  for (const Comparison& comparison : record.findings.comparisons) {
    add(comparison, against(e, comparison),
        Cell(std::string(to_text(comparison.verdict)), std::nullopt,
             outcome_of_verdict(comparison.verdict)),
        e.judgement.judged ? "at most " + margin_text(e) : "—");
  }
  if (record.findings.second_baseline) {
    const Comparison& same = *record.findings.second_baseline;
    add(same, against(e, same) + " (noise)", Cell("—"), "no effect");
  }
  return table;
}

Table arms_table(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  Table table{"Arms", {"arm", "command", "runs", "median", "least", "most", "noise of one run"}};
  for (const compare::ArmSummary& arm : record.findings.arms) {
    const auto value = [&](double v) { return Cell(metric_text(e, v), v); };
    table.rows.push_back({Cell(e.name_of(arm.arm)), Cell(e.arm_of(arm.arm).command),
                          Cell(base::grouped(arm.runs), static_cast<double>(arm.runs)),
                          value(arm.median), value(arm.low), value(arm.high),
                          Cell(fmt::format("{:.2f} %", arm.deviation_pct), arm.deviation_pct)});
  }
  return table;
}

void add_shift(Table& table, const char* name, const std::optional<compare::Shift>& shift,
               bool seconds) {
  if (!shift || shift->estimate.method == compare::Method::kNone) return;
  const auto text = [&](double v) {
    return seconds
               ? fmt::format("{}{}", v < 0 ? "-" : "+", base::to_text(base::Seconds(std::abs(v))))
               : signed_figure(v);
  };
  table.rows.push_back(
      {Cell(name),
       Cell(seconds ? base::to_text(base::Seconds(shift->baseline)) : figure(shift->baseline),
            shift->baseline),
       Cell(text(shift->estimate.centre), shift->estimate.centre),
       Cell(text(shift->estimate.interval.low), shift->estimate.interval.low),
       Cell(text(shift->estimate.interval.high), shift->estimate.interval.high)});
}

// Start-up, time after the last step, and quality, if they were measured.
void add_shifts(const Comparison& comparison, Section& section) {
  Table table{"Besides the metric", {"what", "baseline", "added", "from", "to"}};
  add_shift(table, "start-up", comparison.startup_s, true);
  add_shift(table, "after the last step", comparison.after_s, true);
  add_shift(table, "all that is not steps", comparison.outside_s, true);
  add_shift(table, "quality", comparison.quality, false);
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  if (comparison.quality_within_noise) {
    section.blocks.emplace_back(Note{*comparison.quality_within_noise
                                         ? "Quality is within its noise."
                                         : "Quality changed by more than its noise."});
  }
}

Section notes_section(const ExperimentRecord& record) {
  Section section{"Remarks"};
  const compare::Findings& f = record.findings;
  if (f.blocks.warm_up > 0) {
    section.blocks.emplace_back(Note{compare::counted(f.blocks.warm_up, "block") +
                                     " at the beginning were not counted: warm-up."});
  }
  for (const std::string& remark : record.preflight) {
    section.blocks.emplace_back(Note{"Before it began: " + remark + "."});
  }
  for (const std::string& warning : f.warnings) section.blocks.emplace_back(Note{warning + "."});
  section.blocks.emplace_back(
      Note{record.stopped.empty()
               ? std::string(
                     "It was interrupted before its stopping rule ended it, so nothing is decided.")
               : fmt::format("It ended because {}.", record.stopped)});
  section.blocks.emplace_back(
      Note{fmt::format("Runs were made in random order, seed {}. Every run is recorded in {}.",
                       record.measured.experiment.seed, record.directory)});
  return section;
}

Table fingerprint_of(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  Table table{"The experiment", {"", ""}};
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
  };
  if (!e.steps) add("metric", e.metric.text());
  if (e.steps) add("steps", e.steps->text());
  if (e.quality) add("quality", e.quality->text());
  add("margin", margin_text(e));
  add("stops at", fmt::format("± {:g} % after {} pairs, {} pairs, or {}", e.stop.half_width_pct,
                              e.stop.min_pairs, base::grouped(e.stop.max_pairs),
                              base::to_text(e.stop.max_time)));
  add("directory", e.directory);
  if (!record.measured.runs.empty()) {
    add("first run", record.measured.runs.front().started);
    add("last run", record.measured.runs.back().started);
  }
  for (const compare::Arm& arm : e.arms) {
    for (const std::string& setting : arm.environment) {
      add("environment", fmt::format("{}: {}", arm.name, setting));
    }
    if (!arm.prepare.empty()) add("prepare", fmt::format("{}: {}", arm.name, arm.prepare));
    if (!arm.cleanup.empty()) add("clean up", fmt::format("{}: {}", arm.name, arm.cleanup));
  }
  return table;
}

// Where it ran: a row for every time that it was started or resumed.
Table sessions_table(const ExperimentRecord& record) {
  Table table{"Where it ran",
              {"begun", "host", "machine", "kernel", "GPU driver", "assay", "project"}};
  for (const compare::SessionRecord& session : record.measured.sessions) {
    table.rows.push_back({Cell(session.begun), Cell(session.host), Cell(session.machine),
                          Cell(session.kernel), Cell(or_dash(session.driver)), Cell(session.assay),
                          Cell(or_dash(session.project))});
  }
  return table;
}

// When the estimate was shown, and the confidence that a verdict needed after that.
Table analyses_table(const ExperimentRecord& record) {
  Table table{"Interim analyses",
              {"pairs", "it ended because", "as planned", "confidence of the verdict"}};
  const double alpha = record.measured.experiment.alpha();
  for (const compare::InterimAnalysis& analysis : record.measured.analyses) {
    const double confidence = 100 * (1 - alpha * analysis.alpha_share);
    table.rows.push_back(
        {Cell(base::grouped(analysis.pairs), static_cast<double>(analysis.pairs)),
         Cell(std::string(to_text(analysis.stop))), Cell(analysis.planned ? "yes" : "no"),
         analysis.alpha_share > 0 ? Cell(fmt::format("{:.4g} %", confidence), confidence)
                                  : Cell("none: it decided nothing")});
  }
  return table;
}

Section history_section(const ExperimentRecord& record) {
  Section section{"How it came about"};
  if (!record.measured.sessions.empty()) section.blocks.emplace_back(sessions_table(record));
  if (!record.measured.analyses.empty()) section.blocks.emplace_back(analyses_table(record));
  Table failed{"Runs that failed", {"run", "arm", "started", "what"}};
  for (const compare::FailedRun& run : record.measured.failures) {
    failed.rows.push_back({Cell(std::to_string(run.run), static_cast<double>(run.run)),
                           Cell(record.measured.experiment.name_of(run.arm)), Cell(run.started),
                           Cell(run.what)});
  }
  if (!failed.rows.empty()) section.blocks.emplace_back(std::move(failed));
  return section;
}

// Of an experiment without a finished pair: what there is, and why there is not more.
Section nothing_section(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  Section section{"Nothing to compare yet"};
  std::string why;
  if (!record.measured.failures.empty()) {
    const compare::FailedRun& last = record.measured.failures.back();
    why = fmt::format("The last run of {} failed: {}.", e.name_of(last.arm), last.what);
  } else if (record.measured.runs.empty()) {
    why = "No run has finished.";
  } else {
    why = fmt::format(
        "{} finished, which make no whole pair.",
        compare::counted(static_cast<std::int64_t>(record.measured.runs.size()), "run"));
  }
  section.blocks.emplace_back(Note{std::move(why)});
  section.blocks.emplace_back(Note{fmt::format("Continue with: assay compare --resume {}",
                                               base::shell_quoted(record.directory))});
  Table arms{"Arms", {"arm", "command"}};
  for (std::size_t arm = 0; arm < e.arms.size(); ++arm) {
    arms.rows.push_back({Cell(e.name_of(arm)), Cell(e.arm_of(arm).command)});
  }
  section.blocks.emplace_back(std::move(arms));
  return section;
}

}  // namespace

bool ExperimentRecord::has_pairs() const {
  return !findings.comparisons.empty() && findings.comparisons.front().effect.estimate.pairs > 0;
}

Part experiment_part(ExperimentRecord record) {
  const Experiment& e = record.measured.experiment;
  const compare::Findings& f = record.findings;
  Part part{.kind = "experiment", .title = {}, .subtitle = record.directory};
  part.title = e.arms.size() > 2
                   ? fmt::format("{} arms against {}", e.arms.size() - 1, arm_title(e, 0))
                   : fmt::format("{} against {}", arm_title(e, e.arms.size() - 1), arm_title(e, 0));
  if (!record.has_pairs()) {
    part.verdict = {Outcome::kOpen, "EMPTY", "no finished pair of runs yet"};
    add_section(part, nothing_section(record));
    add_section(part, history_section(record));
    add_section(part, {"Fingerprint", {fingerprint_of(record)}});
    part.data = std::move(record.data);
    return part;
  }
  const Comparison& decided = f.deciding();
  const double effect = compare::percent(decided.effect.estimate.centre);
  const std::string ratio = ratio_text(effect, is_time(e));
  part.verdict = {outcome_of_verdict(f.verdict), std::string(to_text(f.verdict)),
                  fmt::format("{}: {}{} ({:.4g} % interval {}); allowed: {}", against(e, decided),
                              signed_percent(effect), ratio.empty() ? "" : ", " + ratio,
                              100 * (1 - decided.effect.alpha),
                              interval_text(decided.effect.estimate), margin_text(e))};
  add_section(part, {"Goals", {goals_table(record), arms_table(record)}});
  for (const Comparison& comparison : f.comparisons) {
    Section section{against(e, comparison)};
    section.blocks.emplace_back(pairs_chart(record, comparison));
    section.blocks.emplace_back(estimates_chart(record, comparison));
    const compare::Signs& signs = comparison.effect.signs;
    section.blocks.emplace_back(Note{fmt::format(
        "{} took more in {}, less in {} and as much in {} of {} pairs.", e.name_of(comparison.arm),
        signs.more, signs.less, signs.equal, comparison.effect.estimate.pairs)});
    add_shifts(comparison, section);
    add_section(part, std::move(section));
  }
  add_section(part, {"Every run", {runs_chart(record)}});
  add_section(part, notes_section(record));
  add_section(part, history_section(record));
  add_section(part, {"Fingerprint", {fingerprint_of(record)}});
  part.data = std::move(record.data);
  return part;
}

}  // namespace assay::report
