#include "report/experiment_part.h"

#include <fmt/format.h>

#include <algorithm>
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

Rating rating_of_verdict(compare::IntervalVerdict verdict) {
  switch (verdict) {
    case compare::IntervalVerdict::kPass:
      return Rating::kGood;
    case compare::IntervalVerdict::kFail:
      return Rating::kBad;
    case compare::IntervalVerdict::kInconclusive:
    case compare::IntervalVerdict::kNotJudged:
      break;
  }
  return Rating::kOpen;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "—" : text;
}

std::string margin_text(const Experiment& e) {
  return fmt::format("{:g} %{}", e.judgement.margin_pct,
                     e.judgement.more_is_better ? " less" : " more");
}

// The command of a scan, and the values of each parameter in the order in which they were given.
std::string scan_title(const Experiment& e) {
  const std::string& command = e.arms.front().scanned_command;
  std::string title = base::printable(command.empty() ? e.arms.front().command : command);
  for (std::size_t i = 0; i < e.scanned.size(); ++i) {
    std::vector<std::string> values;
    for (const compare::Arm& arm : e.arms) {
      if (std::find(values.begin(), values.end(), arm.values[i]) == values.end()) {
        values.push_back(arm.values[i]);
      }
    }
    title += fmt::format("{} {} = {}", i == 0 ? " for" : ",", e.scanned[i],
                         base::printable(fmt::format("{}", fmt::join(values, ", "))));
  }
  return title;
}

// The arm's name if it was given one, else its command: "A" and "B" identify nothing.
std::string arm_title(const Experiment& e, std::size_t arm) {
  constexpr std::size_t kMostCommand = 60;  // columns
  std::string name = e.name_of(arm);
  const bool default_name = name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z';
  if (!default_name) return name;
  return base::shortened_middle(base::printable(e.arm_of(arm).command), kMostCommand);
}

// "2 arms against ./train", "./b against ./a", "sleep {N} for N = 1, 2, 4"
std::string experiment_title(const Experiment& e) {
  if (!e.scanned.empty()) return scan_title(e);
  if (e.arms.size() > 2) {
    return fmt::format("{} against {}",
                       base::counted(static_cast<std::int64_t>(e.arms.size()) - 1, "arm"),
                       arm_title(e, 0));
  }
  return fmt::format("{} against {}", arm_title(e, e.arms.size() - 1), arm_title(e, 0));
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
PageTable goals_table(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  PageTable table{"Goals", {"what", "verdict", "measured", "ratio", "interval", "goal", "pairs"}};
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
    add(comparison, against(e, comparison), verdict_cell(record, comparison.verdict),
        "at most " + margin_text(e));
  }
  if (record.findings.second_baseline) {
    const Comparison& same = *record.findings.second_baseline;
    add(same, against(e, same) + " (noise)", Cell("—"), "no effect");
  }
  return table;
}

// The arms of a scan by value, each against the first.
PageTable values_table(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  PageTable table{"By value", e.scanned};
  for (const char* column :
       {"median", "against", "ratio", "interval", "noise of one run", "runs"}) {
    table.columns.emplace_back(column);
  }
  table.columns[e.scanned.size() + 1] += " " + e.arms.front().name;
  if (e.judgement.judged) table.columns.emplace_back("verdict");
  const auto add = [&](std::size_t arm, const Comparison* comparison) {
    const compare::ArmSummary& summary = record.findings.arms[arm];
    std::vector<Cell> row;
    for (const std::string& value : e.arm_of(arm).values) row.emplace_back(value);
    if (arm >= e.arms.size()) row.front().text += "' (noise)";
    row.emplace_back(metric_text(e, summary.median), summary.median);
    if (comparison != nullptr) {
      for (Cell& cell : effect_cells(e, *comparison)) row.push_back(std::move(cell));
    } else {
      row.insert(row.end(), {Cell("—"), Cell("—"), Cell("—")});
    }
    row.emplace_back(fmt::format("{:.2f} %", summary.deviation_pct), summary.deviation_pct);
    row.emplace_back(base::grouped(summary.runs), static_cast<double>(summary.runs));
    if (e.judgement.judged) {
      row.push_back(comparison != nullptr && arm < e.arms.size()
                        ? verdict_cell(record, comparison->verdict)
                        : Cell("—"));
    }
    table.rows.push_back(std::move(row));
  };
  add(0, nullptr);
  for (const Comparison& comparison : record.findings.comparisons) add(comparison.arm, &comparison);
  if (record.findings.second_baseline) add(e.arms.size(), &*record.findings.second_baseline);
  return table;
}

// The order of three or more arms, and all pairs of them.
Section ranking_section(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  const compare::Ranking& ranking = record.findings.ranking;
  Section section{"All pairs"};
  section.blocks.emplace_back(Note{compare::ranking_text(e, ranking) + "."});
  PageTable table{"Pairs",
                  {"pair", "measured", "ratio",
                   fmt::format("{:.4g} % interval", 100 * (1 - ranking.pair_alpha)), "differ"}};
  for (const compare::ArmPair& pair : ranking.pairs) {
    std::vector<Cell> cells = {
        Cell(fmt::format("{} against {}", e.name_of(pair.arm), e.name_of(pair.from)))};
    for (Cell& cell : effect_cells(e, {.arm = pair.arm, .effect = {.estimate = pair.estimate}})) {
      cells.push_back(std::move(cell));
    }
    cells.emplace_back(pair.differ ? "yes" : "no");
    table.rows.push_back(std::move(cells));
  }
  section.blocks.emplace_back(std::move(table));
  section.blocks.emplace_back(
      Note{"Whether two differ is decided by Holm's procedure; the intervals hold together."});
  return section;
}

PageTable arms_table(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  PageTable table{"Arms",
                  {"arm", "command", "runs", "median", "least", "most", "noise of one run"}};
  for (const compare::ArmSummary& arm : record.findings.arms) {
    const auto value = [&](double v) { return Cell(metric_text(e, v), v); };
    table.rows.push_back({Cell(e.name_of(arm.arm)), Cell(e.arm_of(arm.arm).command),
                          Cell(base::grouped(arm.runs), static_cast<double>(arm.runs)),
                          value(arm.median), value(arm.low), value(arm.high),
                          Cell(fmt::format("{:.2f} %", arm.deviation_pct), arm.deviation_pct)});
  }
  return table;
}

void add_shift(PageTable& table, const char* name, const std::optional<compare::Shift>& shift,
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
  PageTable table{"Other measurements", {"what", "baseline", "added", "from", "to"}};
  add_shift(table, "start-up", comparison.startup_s, true);
  add_shift(table, "after the last step", comparison.after_s, true);
  add_shift(table, "everything except steps", comparison.outside_s, true);
  add_shift(table, "quality", comparison.quality, false);
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  if (comparison.quality_within_noise) {
    section.blocks.emplace_back(Note{*comparison.quality_within_noise
                                         ? "Quality is within its noise."
                                         : "Quality changed by more than its noise."});
  }
}

Section section_with_seed(const ExperimentRecord& record, Section section) {
  section.blocks.emplace_back(
      Note{fmt::format("Runs were made in random order, seed {}. Every run is recorded in {}.",
                       record.measured.experiment.seed, record.directory)});
  return section;
}

// A warning as a sentence. One about an arm begins with its name, which is not changed.
std::string sentence(const Experiment& e, std::string text) {
  bool names_arm = false;
  for (const compare::Arm& arm : e.arms) {
    names_arm = names_arm || text.starts_with(arm.name + ":") || text.starts_with(arm.name + "'");
  }
  const bool lower = !text.empty() && text[0] >= 'a' && text[0] <= 'z';
  if (lower && !names_arm) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

Section notes_section(const ExperimentRecord& record) {
  Section section{"Remarks"};
  const Experiment& e = record.measured.experiment;
  const compare::Findings& f = record.findings;
  if (f.blocks.warm_up > 0) {
    section.blocks.emplace_back(Note{base::counted(f.blocks.warm_up, "block at the beginning was",
                                                   "blocks at the beginning were") +
                                     " not counted: warm-up."});
  }
  for (const std::string& remark : record.preflight) {
    section.blocks.emplace_back(Note{"Before it began: " + remark + "."});
  }
  for (const std::string& warning : f.warnings) {
    section.blocks.emplace_back(Note{sentence(e, warning)});
  }
  if (!record.failure().empty()) {
    section.blocks.emplace_back(Note{fmt::format("It ended at {}.", record.failure())});
    return section_with_seed(record, std::move(section));
  }
  section.blocks.emplace_back(
      Note{record.stopped.empty()
               ? std::string(
                     "It was interrupted before its stopping rule was met, so there is no verdict.")
               : fmt::format("It ended because {}.", record.stopped)});
  return section_with_seed(record, std::move(section));
}

PageTable fingerprint_of(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  PageTable table{"The experiment", {"", ""}};
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
  };
  if (!e.steps) add("metric", e.metric.text());
  if (e.steps) add("steps", e.steps->text());
  if (e.quality) add("quality", e.quality->text());
  if (e.judgement.judged) add("margin", margin_text(e));
  add("stops at",
      fmt::format("± {:g} % after {} pairs, {} pairs, or {}", e.stop.half_width_pct,
                  e.stop.min_pairs, base::grouped(e.stop.max_pairs), limit_text(e.stop.max_time)));
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
PageTable sessions_table(const ExperimentRecord& record) {
  const std::vector<std::string> columns = {"begun",      "host",  "machine", "kernel",
                                            "GPU driver", "assay", "project"};
  const auto row_of = [](const compare::SessionRecord& session) {
    return std::vector<Cell>{Cell(session.begun),           Cell(session.host),
                             Cell(session.machine),         Cell(session.kernel),
                             Cell(or_dash(session.driver)), Cell(session.assay),
                             Cell(or_dash(session.project))};
  };
  const auto& sessions = record.measured.sessions;
  if (sessions.size() != 1) {
    PageTable table{"Where it ran", columns};
    for (const compare::SessionRecord& session : sessions) table.rows.push_back(row_of(session));
    return table;
  }
  // A single session is readable on a phone if its facts are below each other.
  PageTable table{"Where it ran", {"", ""}};
  std::vector<Cell> cells = row_of(sessions.front());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    table.rows.push_back({Cell(columns[i]), std::move(cells[i])});
  }
  return table;
}

// When the estimate was shown, and the confidence that a verdict needed after that.
PageTable analyses_table(const ExperimentRecord& record) {
  PageTable table{"Interim analyses",
                  {"pairs", "it ended because", "as planned", "confidence of the verdict"}};
  const double alpha = record.measured.experiment.alpha();
  for (const compare::InterimAnalysis& analysis : record.measured.analyses) {
    const double confidence = 100 * (1 - alpha * analysis.alpha_share);
    table.rows.push_back(
        {Cell(base::grouped(analysis.pairs), static_cast<double>(analysis.pairs)),
         Cell(std::string(to_text(analysis.stop))), Cell(analysis.planned ? "yes" : "no"),
         analysis.alpha_share > 0 ? Cell(fmt::format("{:.4g} %", confidence), confidence)
                                  : Cell("none: no verdict")});
  }
  return table;
}

Section history_section(const ExperimentRecord& record) {
  Section section{"History"};
  if (!record.measured.sessions.empty()) section.blocks.emplace_back(sessions_table(record));
  if (!record.measured.analyses.empty()) section.blocks.emplace_back(analyses_table(record));
  PageTable failed{"Runs that failed", {"run", "arm", "started", "what"}};
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
  if (!record.failure().empty()) {
    why = fmt::format("It ended at {}.", record.failure());
  } else if (record.measured.runs.empty()) {
    why = "No run has finished.";
  } else {
    why = fmt::format("{} finished: not enough for a complete pair.",
                      base::counted(static_cast<std::int64_t>(record.measured.runs.size()), "run"));
  }
  section.blocks.emplace_back(Note{std::move(why)});
  if (record.failure().empty() || record.measured.may_succeed_when_resumed()) {
    section.blocks.emplace_back(Note{fmt::format("Continue with: assay compare --resume {}",
                                                 base::shell_quoted(record.directory))});
  }
  PageTable arms{"Arms", {"arm", "command"}};
  for (std::size_t arm = 0; arm < e.arms.size(); ++arm) {
    arms.rows.push_back({Cell(e.name_of(arm)), Cell(e.arm_of(arm).command)});
  }
  section.blocks.emplace_back(std::move(arms));
  return section;
}

// The word and the headline: what decided, or why nothing did.
Verdict verdict_of_experiment(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  const compare::Findings& f = record.findings;
  const Cell word = verdict_cell(record, f.verdict);
  if (!record.failure().empty()) return {word.rating, word.text, record.failure()};
  if (!e.judgement.judged) return {word.rating, word.text, compare::headline(e, f)};
  const Comparison& decided = f.deciding();
  const double effect = compare::percent(decided.effect.estimate.centre);
  const std::string ratio = ratio_text(effect, is_time(e));
  return {word.rating, word.text,
          fmt::format("{}: {}{} ({:.4g} % interval {}); allowed: {}", against(e, decided),
                      signed_percent(effect), ratio.empty() ? "" : ", " + ratio,
                      100 * (1 - decided.effect.alpha), interval_text(decided.effect.estimate),
                      margin_text(e))};
}

}  // namespace

Cell verdict_cell(const ExperimentRecord& record, compare::IntervalVerdict verdict) {
  return record.failure().empty()
             ? Cell(std::string(to_text(verdict)), std::nullopt, rating_of_verdict(verdict))
             : Cell(std::string(compare::kNoVerdict), std::nullopt, Rating::kOpen);
}

std::vector<Cell> effect_cells(const Experiment& e, const Comparison& comparison) {
  const Estimate& estimate = comparison.effect.estimate;
  if (estimate.pairs == 0) return {Cell("—"), Cell("—"), Cell("—")};
  const double effect = compare::percent(estimate.centre);
  return {Cell(signed_percent(effect), effect),
          Cell(or_dash(ratio_text(effect, is_time(e))), effect), Cell(interval_text(estimate))};
}

std::string ExperimentRecord::failure() const {
  const compare::FailedRun* const failed = measured.last_failure();
  return failed == nullptr ? "" : compare::failure_text(measured.experiment, *failed);
}

bool ExperimentRecord::has_pairs() const {
  return !findings.comparisons.empty() && findings.comparisons.front().effect.estimate.pairs > 0;
}

PagePart experiment_part(ExperimentRecord record) {
  const Experiment& e = record.measured.experiment;
  const compare::Findings& f = record.findings;
  PagePart part{
      .kind = e.scanned.empty() ? "experiment" : "scan", .title = {}, .subtitle = record.directory};
  part.title = experiment_title(e);
  if (!record.has_pairs()) {
    part.verdict = {Rating::kOpen, std::string(compare::kNoVerdict),
                    record.failure().empty() ? "no finished pair of runs yet" : record.failure()};
    add_section(part, nothing_section(record));
    add_section(part, history_section(record));
    add_section(part, {"Fingerprint", {fingerprint_of(record)}});
    part.data = std::move(record.data);
    return part;
  }
  part.verdict = verdict_of_experiment(record);
  if (e.scanned.empty()) {
    add_section(part, {"Goals", {goals_table(record), arms_table(record)}});
    if (!f.ranking.empty()) add_section(part, ranking_section(record));
  } else {
    add_section(part, {"By value", {values_table(record), values_chart(record)}});
    add_section(part, {"Arms", {arms_table(record)}});
  }
  for (const Comparison& comparison : f.comparisons) {
    Section section{against(e, comparison)};
    section.blocks.emplace_back(pairs_chart(record, comparison));
    section.blocks.emplace_back(estimates_chart(record, comparison));
    const compare::Signs& signs = comparison.effect.signs;
    section.blocks.emplace_back(Note{fmt::format(
        "{} was higher in {}, lower in {} and equal in {} of {}.", e.name_of(comparison.arm),
        base::grouped(signs.more), base::grouped(signs.less), base::grouped(signs.equal),
        base::counted(comparison.effect.estimate.pairs, "pair"))});
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

PagePart part_not_begun(std::string kind, const std::string& directory) {
  PagePart part{.kind = std::move(kind), .title = directory, .subtitle = directory};
  part.verdict = {Rating::kOpen, std::string(compare::kNoVerdict), "it was killed before it began"};
  add_section(part, {"Nothing was measured",
                     {Note{"assay compare was killed before it had recorded what to compare."}}});
  return part;
}

}  // namespace assay::report
