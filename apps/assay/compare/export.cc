#include "assay/compare/export.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "assay/compare/print.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/markdown.h"
#include "report/numbers.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using base::add_markdown_row;
using base::markdown_text;
using compare::ArmRun;
using compare::Comparison;
using compare::Experiment;

void add_csv_row(std::string& text, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    text += (i == 0 ? "" : ",") + base::csv_field(cells[i]);
  }
  text += "\n";
}

std::string number_cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::vector<std::string> csv_columns(const std::vector<std::string>& parameters) {
  std::vector<std::string> columns = parameters;
  for (const char* name : {"run", "block", "arm", "started", "wall_s", "cpu_s", "metric", "value",
                           "quality", "warm_up", "paired", "marks", "failure"}) {
    columns.emplace_back(name);
  }
  return columns;
}

// One row per run, failed ones too, in the order of execution. `values` are those of a scan with an
// experiment per value; the arms of other scans have their own.
void add_runs(const ExperimentResult& result, const std::vector<std::string>& values,
              std::string& text) {
  const Experiment& e = result.measured.experiment;
  std::map<std::int64_t, const compare::Block*> blocks;
  for (const compare::Block& block : result.findings.blocks.complete) blocks[block.number] = &block;
  const std::string metric = e.steps ? e.steps->text() : e.metric.text();
  const auto first_cells = [&](std::size_t arm) {
    return e.scanned.empty() ? values : e.arm_of(arm).values;
  };
  auto failed = result.measured.failures.begin();
  const auto add_failures_before = [&](std::int64_t run) {
    for (; failed != result.measured.failures.end() && failed->run < run; ++failed) {
      std::vector<std::string> row = first_cells(failed->arm);
      for (std::string cell :
           {std::to_string(failed->run), std::to_string(failed->block), e.name_of(failed->arm),
            failed->started, std::string(), std::string(), metric, std::string(), std::string(),
            std::string("false"), std::string("false"), std::string(), failed->what}) {
        row.push_back(std::move(cell));
      }
      add_csv_row(text, row);
    }
  };
  for (const ArmRun& run : result.measured.runs) {
    add_failures_before(run.run);
    const auto block = blocks.find(run.block);
    const bool complete = block != blocks.end();
    const bool warm_up = complete && block->second->warm_up;
    std::vector<std::string> row = first_cells(run.arm);
    for (std::string cell :
         {std::to_string(run.run), std::to_string(run.block), e.name_of(run.arm), run.started,
          number_cell(run.wall_s), number_cell(run.cpu_s), metric, number_cell(run.value),
          number_cell(run.quality), std::string(warm_up ? "true" : "false"),
          std::string(complete && !warm_up ? "true" : "false"),
          complete ? fmt::format("{}", fmt::join(block->second->marks, "; ")) : std::string(),
          std::string()}) {
      row.push_back(std::move(cell));
    }
    add_csv_row(text, row);
  }
  add_failures_before(std::numeric_limits<std::int64_t>::max());
}

// The arms of one experiment: the baseline, then each of the others with its verdict.
void add_arms(const ExperimentResult& result, const std::vector<std::string>& values,
              std::string& text) {
  const Experiment& e = result.measured.experiment;
  const compare::Findings& f = result.findings;
  const auto row_of = [&](std::size_t arm) {
    std::vector<std::string> row;
    for (const std::string& value : e.scanned.empty() ? values : e.arms[arm].values) {
      row.push_back(markdown_text(value));
    }
    row.push_back(markdown_text(e.arms[arm].name));
    row.push_back(base::markdown_code_cell(e.arms[arm].command));
    row.push_back(std::to_string(f.arms[arm].runs));
    row.push_back(markdown_text(value_text(e, f.arms[arm], f.arms[arm].median)));
    return row;
  };
  std::vector<std::string> baseline = row_of(0);
  baseline.insert(baseline.end(), {"", "", "", ""});
  add_markdown_row(text, baseline);
  for (const Comparison& comparison : f.comparisons) {
    std::vector<std::string> row = row_of(comparison.arm);
    const compare::Estimate& estimate = comparison.effect.estimate;
    const compare::ConfidenceInterval p = compare::percent(estimate.interval);
    const bool known = estimate.method != compare::Method::kNone;
    row.push_back(known ? report::signed_percent(compare::percent(estimate.centre)) : "—");
    row.push_back(known ? fmt::format("{} to {}", report::signed_percent(p.low),
                                      report::signed_percent(p.high))
                        : "—");
    row.push_back(known ? markdown_text(compare::ratio_text(e, estimate.centre)) : "—");
    row.push_back(markdown_text(result.verdict_text(comparison.verdict)));
    add_markdown_row(text, row);
  }
}

std::string markdown_head(const std::vector<std::string>& parameters, double alpha) {
  std::vector<std::string> titles;
  for (const std::string& parameter : parameters) titles.push_back(markdown_text(parameter));
  for (const char* title : {"arm", "command", "runs", "median", "effect"}) {
    titles.emplace_back(title);
  }
  titles.push_back(fmt::format("{:.4g} % interval", 100 * (1 - alpha)));
  titles.emplace_back("ratio");
  titles.emplace_back("verdict");
  std::string text;
  add_markdown_row(text, titles);
  for (std::size_t i = 0; i < titles.size(); ++i) text += "|---";
  return text + "|\n";
}

// All pairs of three or more arms.
std::string markdown_pairs(const ExperimentResult& result) {
  const Experiment& e = result.measured.experiment;
  const compare::Ranking& ranking = result.findings.ranking;
  if (ranking.empty()) return {};
  std::string text = fmt::format(
      "\n| all pairs | effect | {:.4g} % interval | ratio | differ |\n|---|---|---|---|---|\n",
      100 * (1 - ranking.pair_alpha));
  for (const compare::ArmPair& pair : ranking.pairs) {
    const compare::ConfidenceInterval p = compare::percent(pair.estimate.interval);
    const bool known = pair.estimate.method != compare::Method::kNone;
    add_markdown_row(
        text,
        {markdown_text(fmt::format("{} against {}", e.name_of(pair.arm), e.name_of(pair.from))),
         known ? report::signed_percent(compare::percent(pair.estimate.centre)) : "—",
         known ? fmt::format("{} to {}", report::signed_percent(p.low),
                             report::signed_percent(p.high))
               : "—",
         known ? markdown_text(compare::ratio_text(e, pair.estimate.centre)) : "—",
         pair.differ ? "yes" : "no"});
  }
  return text;
}

// Below the table: what was measured, where, and against which margin.
std::string markdown_foot(const ExperimentResult& result, bool of_scan) {
  const Experiment& e = result.measured.experiment;
  std::string text =
      fmt::format("\nMetric: {}", base::markdown_code(e.steps ? e.steps->text() : e.metric.text()));
  if (e.judgement.judged) text += fmt::format("; margin: {:g} %", e.judgement.margin_pct);
  if (result.findings.noise_floor_pct && !of_scan) {
    text += fmt::format("; noise floor: {:.2f} %", *result.findings.noise_floor_pct);
  }
  if (!result.measured.sessions.empty()) {
    const compare::SessionRecord& session = result.measured.sessions.back();
    text += fmt::format("; {}, {}, assay {}", markdown_text(session.machine),
                        markdown_text(session.begun), markdown_text(session.assay));
  }
  text += ".\n";
  if (of_scan) return text;
  if (const std::string line = compare::headline(e, result.findings); !line.empty()) {
    text += fmt::format("\n{}.\n", markdown_text(line));
  }
  if (e.scanned.empty()) text += markdown_pairs(result);
  return text;
}

// What could make the result wrong, and what failed; `point` names it in a scan.
std::string markdown_notes(const ExperimentResult& result, const std::string& point) {
  const std::string prefix = point.empty() ? "\n- " : fmt::format("\n- {}: ", markdown_text(point));
  std::string text;
  if (result.failure)
    text += fmt::format("{}**{}**", prefix, markdown_text(result.failure->line()));
  if (!point.empty() && result.findings.noise_floor_pct) {
    text += fmt::format("{}noise floor {:.2f} %", prefix, *result.findings.noise_floor_pct);
  }
  for (const std::string& warning : result.preflight) {
    text += fmt::format("{}before it began: {}", prefix, markdown_text(warning));
  }
  for (const std::string& warning : result.findings.warnings)
    text += prefix + markdown_text(warning);
  return text;
}

base::Result<void> write_export(const std::string& file, const std::string& directory,
                                const std::string& text) {
  return base::write_output(fs::path(directory) / file, text);
}

}  // namespace

base::Result<void> check_exports(const std::vector<std::string>& files,
                                 const std::string& directory) {
  for (const std::string& file : files) {
    const std::string extension = fs::path(file).extension();
    if (extension != ".csv" && extension != ".md" && extension != ".json") {
      return base::fail(base::usage_error(
          "--export", fmt::format("'{}' has an unknown format", file),
          ".csv for every run, .md for a table of the verdicts, .json for everything"));
    }
    const fs::path target = fs::path(directory) / file;
    std::error_code error;
    if (fs::is_directory(target, error)) {
      return base::fail(base::usage_error("--export", fmt::format("'{}' is a folder", file)));
    }
    ASSAY_TRY_VOID(base::check_output(target, file));
  }
  return {};
}

base::Result<void> export_experiment(const std::vector<std::string>& files,
                                     const std::string& directory, const ExperimentResult& result) {
  const std::vector<std::string>& parameters = result.measured.experiment.scanned;
  for (const std::string& file : files) {
    std::string text;
    if (file.ends_with(".csv")) {
      add_csv_row(text, csv_columns(parameters));
      add_runs(result, {}, text);
    } else if (file.ends_with(".md")) {
      text = markdown_head(parameters, result.measured.experiment.alpha());
      add_arms(result, {}, text);
      text += markdown_foot(result, false);
      const std::string notes = markdown_notes(result, "");
      if (!notes.empty()) text += notes + "\n";
    } else {
      text = base::json_text(experiment_json(result));
    }
    ASSAY_TRY_VOID(write_export(file, directory, text));
  }
  return {};
}

base::Result<void> export_scan(const std::vector<std::string>& files, const std::string& directory,
                               const ScanResult& scan) {
  for (const std::string& file : files) {
    std::string text;
    if (file.ends_with(".csv")) {
      add_csv_row(text, csv_columns(scan.parameters));
      for (const ScanResult::Point& point : scan.points) {
        add_runs(*point.result, point.values, text);
      }
    } else if (file.ends_with(".md")) {
      text =
          markdown_head(scan.parameters, scan.points.front().result->measured.experiment.alpha());
      for (const ScanResult::Point& point : scan.points) {
        add_arms(*point.result, point.values, text);
      }
      text += markdown_foot(*scan.points.back().result, true);
      std::string notes;
      for (const ScanResult::Point& point : scan.points) {
        notes += markdown_notes(*point.result, point.name);
      }
      if (!notes.empty()) text += notes + "\n";
    } else {
      text = base::json_text(scan_json(scan));
    }
    ASSAY_TRY_VOID(write_export(file, directory, text));
  }
  return {};
}

}  // namespace assay::cli
