// Experiments and scans of `assay compare` as parts of a page, made from their journals alone.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "assay/compare/json.h"
#include "assay/compare/scan.h"
#include "assay/report/sources.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/findings.h"
#include "compare/journal.h"
#include "report/experiment_part.h"
#include "report/scan_part.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestResult(std::int64_t{1} << 30U);

// Why the experiment ended, the warnings before it began, and how much of the allowed error its
// verdict may spend. The journal's last interim analysis has this if it includes all runs;
// otherwise the experiment was killed. Journals of old versions have none; there result.json has
// it.
struct ExperimentEnding {
  compare::StopReason stop = compare::StopReason::kNo;
  double alpha_share = 0;
  std::vector<std::string> preflight;
};

ExperimentEnding end_in_journal(const compare::Measured& measured) {
  ExperimentEnding end;
  if (!measured.sessions.empty()) end.preflight = measured.sessions.back().preflight;
  if (measured.analyses.empty()) return end;
  const compare::InterimAnalysis& analysis = measured.analyses.back();
  if (analysis.run != measured.last_run()) return end;
  end.stop = analysis.stop;
  end.alpha_share = analysis.alpha_share;
  return end;
}

ExperimentEnding end_in_result(const fs::path& directory, std::size_t blocks) {
  ExperimentEnding end;
  const auto text = base::read_file(directory / "result.json", kLargestResult);
  if (!text) return end;
  const base::Json result = base::Json::parse(*text, nullptr, false);
  if (!result.is_object() || !result.contains("pairs_raw") || !result.at("pairs_raw").is_array() ||
      result.at("pairs_raw").size() != blocks) {
    return end;
  }
  if (result.contains("preflight") && result.at("preflight").is_array()) {
    for (const base::Json& line : result.at("preflight")) {
      if (line.is_string()) end.preflight.push_back(line);
    }
  }
  if (result.contains("stopped") && result.at("stopped").is_string()) {
    end.stop = compare::stop_reason_from_text(result.at("stopped").get<std::string>());
  }
  if (end.stop != compare::StopReason::kNo && end.stop != compare::StopReason::kFailed)
    end.alpha_share = 1;
  return end;
}

// An experiment as it is now; a pointer, because findings refer to what was measured.
base::Result<std::unique_ptr<ExperimentResult>> load_experiment(const fs::path& directory) {
  auto result = std::make_unique<ExperimentResult>();
  ASSAY_TRY(result->measured, compare::read_journal(directory));
  const compare::Measured& measured = result->measured;
  ExperimentEnding end =
      measured.analyses.empty() && measured.sessions.empty()
          ? end_in_result(directory, compare::blocks_of(measured).complete.size())
          : end_in_journal(measured);
  if (const compare::FailedRun* const failed = measured.last_failure()) {
    end.stop = compare::StopReason::kFailed;
    end.alpha_share = 0;
    result->failure = base::unfit_error(
        compare::where_failed(measured.experiment, failed->run, failed->arm), failed->what);
  }
  result->findings = compare::findings_of(measured, end.alpha_share);
  result->stop = end.stop;
  result->preflight = std::move(end.preflight);
  result->directory = directory.string();
  return result;
}

report::ExperimentRecord record_of(const ExperimentResult& result) {
  const bool ended = result.stop != compare::StopReason::kNo;
  return {.measured = result.measured,
          .findings = result.findings,
          .directory = result.directory,
          .stopped = ended ? std::string(compare::to_text(result.stop)) : "",
          .preflight = result.preflight,
          .data = {}};
}

report::PagePart part_of(const ExperimentResult& result) {
  report::ExperimentRecord record = record_of(result);
  if (record.has_pairs()) record.data = experiment_json(result);
  return report::experiment_part(std::move(record));
}

// Why there is nothing to report.
base::Error no_pair_error(const ExperimentResult& result) {
  const std::string resume =
      fmt::format("continue with assay compare --resume {}", base::shell_quoted(result.directory));
  if (!result.failure) {
    return base::unfit_error(result.directory, "has no finished pair of runs yet", resume);
  }
  return base::unfit_error(result.directory,
                           fmt::format("has no finished pair of runs: {}", result.failure->line()),
                           result.measured.may_succeed_when_resumed() ? resume : "");
}

}  // namespace

bool is_experiment(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / "runs.jsonl", ignored);
}

base::Result<report::PagePart> experiment_in(const fs::path& directory, IfEmpty if_empty) {
  if (!compare::has_begun(directory) && if_empty == IfEmpty::kExplain) {
    return report::part_not_begun("experiment", directory);
  }
  ASSAY_TRY(const auto result, load_experiment(directory));
  if (!record_of(*result).has_pairs() && if_empty == IfEmpty::kFail) {
    return base::fail(no_pair_error(*result));
  }
  return part_of(*result);
}

bool is_scan(const fs::path& path) {
  return is_scan_folder(path);
}

base::Result<std::vector<report::PagePart>> scan_in(const fs::path& directory, IfEmpty if_empty) {
  ASSAY_TRY(const ScanPlan plan, read_scan_plan(directory));
  ScanResult scan{.parameters = plan.parameters, .points = {}, .directory = directory.string()};
  for (const compare::ScanPoint& point : plan.points) {
    if (!compare::has_begun(directory / point.name)) continue;
    ASSAY_TRY(auto result, load_experiment(directory / point.name));
    scan.points.push_back({point.name, point.values, std::move(result)});
  }
  const bool has_pairs = std::any_of(
      scan.points.begin(), scan.points.end(),
      [](const ScanResult::Point& point) { return record_of(*point.result).has_pairs(); });
  if (scan.points.empty() && if_empty == IfEmpty::kExplain) {
    return std::vector{report::part_not_begun("scan", directory)};
  }
  if (scan.points.empty()) {
    return base::fail(base::unfit_error(scan.directory, "contains a scan without any finished run",
                                        fmt::format("continue with assay compare --resume {}",
                                                    base::shell_quoted(scan.directory))));
  }
  if (!has_pairs && if_empty == IfEmpty::kFail) {
    return base::fail(no_pair_error(*scan.points.front().result));
  }
  report::ScanRecord record{.parameters = scan.parameters,
                            .points = {},
                            .planned = plan.points.size(),
                            .verdict = scan.verdict(),
                            .directory = scan.directory,
                            .data = scan_json(scan)};
  for (const ScanResult::Point& point : scan.points) {
    record.points.push_back({point.name, point.values, record_of(*point.result)});
  }
  std::vector<report::PagePart> parts;
  parts.push_back(report::scan_part(std::move(record)));
  for (const ScanResult::Point& point : scan.points) {
    parts.push_back(part_of(*point.result));
    parts.back().of_previous = true;
    parts.back().title = fmt::format("{}: {}", base::printable(point.name), parts.back().title);
  }
  return parts;
}

}  // namespace assay::cli
