// Runs one experiment from its beginning, or from an earlier session, to its result.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/compare/options.h"
#include "base/result.h"
#include "cli/verb.h"
#include "compare/findings.h"
#include "compare/journal.h"

namespace assay::cli {

struct ExperimentResult {
  compare::Measured measured;
  compare::Findings findings;  // points into `measured`
  compare::StopReason stop = compare::StopReason::kNo;
  std::vector<std::string> preflight = {};  // warnings of the last session
  std::string directory = {};
  std::optional<base::Error> failure = {};  // of an arm

  // "PASS"; "NO VERDICT" for all arms of an experiment that ended because one failed.
  [[nodiscard]] std::string_view verdict_text(compare::IntervalVerdict verdict) const;
};

// A pointer, because findings refer to what was measured. `title` precedes the progress line.
using ExecutedExperiment = base::Result<std::unique_ptr<ExperimentResult>>;
ExecutedExperiment begin_experiment(const Session& session, const compare::Experiment& experiment,
                                    const std::filesystem::path& directory,
                                    const std::string& title = "");
ExecutedExperiment resume_experiment(const Session& session, const CompareOptions& options,
                                     const std::filesystem::path& directory,
                                     const std::string& title = "");

}  // namespace assay::cli
