// An experiment of `assay compare` as a part of a page, made from its journal alone.
#include <fmt/format.h>

#include "assay/compare/json.h"
#include "assay/report/sources.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/findings.h"
#include "report/experiment_part.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestResult(std::int64_t{1} << 30U);

// Why the experiment ended, the warnings before it began, and how much of the allowed error its
// verdict may spend. The journal's last interim analysis has this if it includes all runs;
// otherwise the experiment was killed. Journals of old versions have none; there result.json has
// it.
struct EndOfExperiment {
  compare::Stop stop = compare::Stop::kNo;
  double alpha_share = 0;
  std::vector<std::string> preflight;
};

EndOfExperiment end_in_journal(const compare::Measured& measured) {
  EndOfExperiment end;
  if (!measured.sessions.empty()) end.preflight = measured.sessions.back().preflight;
  if (measured.analyses.empty()) return end;
  const compare::InterimAnalysis& analysis = measured.analyses.back();
  if (analysis.run != measured.last_run()) return end;
  end.stop = analysis.stop;
  end.alpha_share = analysis.alpha_share;
  return end;
}

EndOfExperiment end_in_result(const fs::path& directory, std::size_t blocks) {
  EndOfExperiment end;
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
    end.stop = compare::stop_from_text(result.at("stopped").get<std::string>());
  }
  if (end.stop == compare::Stop::kFailed) end.stop = compare::Stop::kNo;
  if (end.stop != compare::Stop::kNo) end.alpha_share = 1;
  return end;
}

std::optional<base::Error> failure_of(const compare::Measured& measured, compare::Stop stop) {
  if (stop != compare::Stop::kFailed || measured.failures.empty()) return std::nullopt;
  return base::unfit_error("", measured.failures.back().what);
}

}  // namespace

bool is_experiment(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / "runs.jsonl", ignored);
}

base::Result<report::Part> experiment_in(const fs::path& directory, IfEmpty if_empty) {
  ExperimentResult result;
  ASSAY_TRY(result.measured, compare::read_journal(directory));
  const compare::Measured& measured = result.measured;
  const std::size_t blocks = compare::blocks_of(measured).complete.size();
  EndOfExperiment end = measured.analyses.empty() && measured.sessions.empty()
                            ? end_in_result(directory, blocks)
                            : end_in_journal(measured);
  const bool complete = end.stop != compare::Stop::kNo;
  result.findings = compare::findings_of(measured, end.alpha_share);
  report::ExperimentRecord record{
      .measured = measured,
      .findings = result.findings,
      .directory = directory.string(),
      .stopped = complete ? std::string(compare::to_text(end.stop)) : "",
      .preflight = end.preflight,
      .data = {}};
  if (!record.has_pairs() && if_empty == IfEmpty::kFail) {
    return base::fail(base::unfit_error(directory.string(), "has no finished pair of runs yet",
                                        fmt::format("continue with assay compare --resume {}",
                                                    base::shell_quoted(directory.string()))));
  }
  if (record.has_pairs()) {
    result.stop = end.stop;
    result.preflight = end.preflight;
    result.directory = directory.string();
    result.failure = failure_of(measured, end.stop);
    record.data = experiment_json(result);
  }
  return report::experiment_part(std::move(record));
}

}  // namespace assay::cli
