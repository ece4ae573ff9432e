// Experiment files: TOML with the options of `assay compare`, and arms with environment and hooks.
#pragma once

#include <string>
#include <string_view>
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

// Parsers shared by options and experiment files. Errors name `where`.
base::Result<double> percentage(const std::string& where, std::string_view text);
base::Result<double> step_unit_of(const std::string& where, std::string_view text);
base::Result<base::Seconds> duration(const std::string& where, std::string_view text);
base::Result<compare::ComparedMetric> metric_of(const std::string& where, std::string_view text);
base::Result<compare::ComparedMetric> steps_metric_of(const std::string& where,
                                                      std::string_view text);

}  // namespace assay::cli
