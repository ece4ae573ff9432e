#include "report/scan_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "report/experiment_charts.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

using compare::Comparison;
using compare::Experiment;

// "N = 1, 2, 4"
std::string values_text(const ScanRecord& scan, std::size_t parameter) {
  std::vector<std::string> values;
  for (const ScanRecord::Point& point : scan.points) {
    const std::string& value = point.values[parameter];
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return fmt::format("{} = {}", scan.parameters[parameter], fmt::join(values, ", "));
}

std::string scanned_title(const ScanRecord& scan) {
  const Experiment& e = scan.points.front().experiment.measured.experiment;
  const auto command = [&](const compare::Arm& arm) {
    constexpr std::size_t kMostCommand = 60;  // columns
    const std::string& text = arm.scanned_command.empty() ? arm.command : arm.scanned_command;
    return base::shortened_middle(base::printable(text), kMostCommand);
  };
  std::string title =
      e.arms.size() == 2 ? fmt::format("{} against {}", command(e.arms[1]), command(e.arms[0]))
                         : fmt::format("{} arms against {}", e.arms.size() - 1, command(e.arms[0]));
  for (std::size_t i = 0; i < scan.parameters.size(); ++i) {
    title += fmt::format("{} {}", i == 0 ? " for" : ",", base::printable(values_text(scan, i)));
  }
  return title;
}

PageTable scan_table(const ScanRecord& scan) {
  PageTable table{"By value", scan.parameters};
  for (const char* column :
       {"arm", "verdict", "measured", "ratio", "interval", "median", "baseline", "pairs"}) {
    table.columns.emplace_back(column);
  }
  for (const ScanRecord::Point& point : scan.points) {
    const Experiment& e = point.experiment.measured.experiment;
    const compare::Findings& f = point.experiment.findings;
    for (const Comparison& comparison : f.comparisons) {
      std::vector<Cell> row;
      for (const std::string& value : point.values) row.emplace_back(value);
      row.emplace_back(e.name_of(comparison.arm));
      row.push_back(verdict_cell(point.experiment, comparison.verdict));
      for (Cell& cell : effect_cells(e, comparison)) row.push_back(std::move(cell));
      for (const std::size_t arm : {comparison.arm, std::size_t{0}}) {
        const compare::ArmSummary& summary = f.arms[arm];
        row.push_back(summary.runs > 0 ? Cell(metric_text(e, summary.median), summary.median)
                                       : Cell("—"));
      }
      const std::int64_t pairs = comparison.effect.estimate.pairs;
      row.emplace_back(base::grouped(pairs), static_cast<double>(pairs));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Chart scan_chart(const ScanRecord& scan) {
  const Experiment& first = scan.points.front().experiment.measured.experiment;
  std::vector<ComparedValue> values;
  for (const ScanRecord::Point& point : scan.points) {
    const Experiment& e = point.experiment.measured.experiment;
    for (const Comparison& comparison : point.experiment.findings.comparisons) {
      if (comparison.effect.estimate.pairs == 0) continue;
      values.push_back({e.arms.size() == 2
                            ? point.name
                            : fmt::format("{}, {}", point.name, e.name_of(comparison.arm)),
                        &comparison});
    }
  }
  return compared_chart("scan", fmt::format("By value, against {}", first.arms.front().name), first,
                        values);
}

// "2 PASS, 1 FAIL"
std::string verdict_counts(const ScanRecord& scan) {
  std::map<std::string, std::int64_t> counts;
  for (const ScanRecord::Point& point : scan.points) {
    ++counts[verdict_cell(point.experiment, point.experiment.findings.verdict).text];
  }
  std::string text;
  for (const auto& [word, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  }
  return text;
}

}  // namespace

PagePart scan_part(ScanRecord scan) {
  PagePart part{.kind = "scan", .title = scanned_title(scan), .subtitle = scan.directory};
  const ExperimentRecord& last = scan.points.back().experiment;
  const Cell word = verdict_cell(last, scan.verdict);
  part.verdict = {word.rating, word.text,
                  last.failure().empty()
                      ? verdict_counts(scan)
                      : fmt::format("{}: {}", scan.points.back().name, last.failure())};
  Section section{"By value", {scan_table(scan), scan_chart(scan)}};
  if (scan.points.size() < scan.planned) {
    section.blocks.emplace_back(
        Note{fmt::format("{} of {} values were begun.", scan.points.size(), scan.planned)});
  }
  add_section(part, std::move(section));
  part.data = std::move(scan.data);
  return part;
}

}  // namespace assay::report
