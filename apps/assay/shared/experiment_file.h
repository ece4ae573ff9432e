// Experiment files: TOML with the options of `assay compare`, and arms with environment and hooks.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compare/experiment.h"
#include "compare/scan.h"

namespace assay::cli {

struct ExperimentFile {
  compare::Experiment experiment;  // without a seed: 0
  bool has_margin = false;
  std::vector<compare::ScanParameter> scan = {};
};
base::Result<ExperimentFile> read_experiment(const std::string& file);
// The same from text; `source` names it in errors.
base::Result<ExperimentFile> experiment_in(const std::string& text, const std::string& source);

}  // namespace assay::cli
