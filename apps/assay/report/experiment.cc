// An experiment of `assay compare` as a part of a page, made from its journal alone.
#include <fmt/format.h>

#include "assay/compare/print.h"
#include "assay/report/sources.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/findings.h"
#include "report/experiment_part.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestResult(std::int64_t{1} << 30U);

// Why the experiment ended, the remarks before it began, and how much of the allowed error its
// verdict may spend. The journal's last look has this if it includes all runs; otherwise the
// experiment was interrupted. Journals of old versions have no looks; there result.json has it.
struct EndOfExperiment {
  compare::Stop stop = compare::Stop::kNo;
  double share = 0;
  std::vector<std::string> preflight;
};

EndOfExperiment end_in_journal(const compare::Measured& measured) {
  EndOfExperiment end;
  if (!measured.sittings.empty()) end.preflight = measured.sittings.back().preflight;
  if (measured.looks.empty()) return end;
  const compare::Look& look = measured.looks.back();
  if (look.run != measured.last_run()) return end;
  end.stop = look.stop;
  end.share = look.share;
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
  for (const compare::Stop stop :
       {compare::Stop::kNarrow, compare::Stop::kTime, compare::Stop::kPairs}) {
    if (result.contains("stopped") && result.at("stopped") == compare::to_text(stop)) {
      end.stop = stop;
      end.share = 1;
    }
  }
  return end;
}

std::string failure_of(const compare::Measured& measured, compare::Stop stop) {
  return stop == compare::Stop::kFailed && !measured.failures.empty()
             ? measured.failures.back().what
             : "";
}

}  // namespace

bool is_experiment(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / "runs.jsonl", ignored);
}

base::Result<report::Part> experiment_in(const fs::path& directory, IfEmpty if_empty) {
  ASSAY_TRY(const compare::Measured measured, compare::read_journal(directory));
  const std::size_t blocks = compare::blocks_of(measured).complete.size();
  EndOfExperiment end = measured.looks.empty() && measured.sittings.empty()
                            ? end_in_result(directory, blocks)
                            : end_in_journal(measured);
  const bool complete = end.stop != compare::Stop::kNo;
  const compare::Findings findings = compare::findings_of(measured, end.share);
  report::ExperimentRecord record{
      .measured = measured,
      .findings = findings,
      .directory = directory.string(),
      .stopped = complete ? std::string(compare::to_text(end.stop)) : "",
      .preflight = end.preflight,
      .data = {}};
  if (!record.has_pairs() && if_empty == IfEmpty::kFail) {
    return base::fail(base::unfit_error(directory.string(), "has no finished pair of runs yet",
                                        fmt::format("go on with assay compare --resume {}",
                                                    base::shell_quoted(directory.string()))));
  }
  if (record.has_pairs()) {
    const Compared compared{.measured = measured,
                            .findings = findings,
                            .stop = end.stop,
                            .preflight = end.preflight,
                            .directory = directory.string(),
                            .failure = failure_of(measured, end.stop)};
    record.data = compared_json(compared);
  }
  return report::experiment_part(std::move(record));
}

}  // namespace assay::cli
