// Experiment files: TOML with the options of `assay compare`, and arms with environment and hooks.
#pragma once

#include <string>

#include "base/result.h"
#include "compare/experiment.h"

namespace assay::cli {

// An experiment without a seed has seed 0.
base::Result<compare::Experiment> read_experiment(const std::string& file);
// The same from text; `source` names it in errors.
base::Result<compare::Experiment> experiment_in(const std::string& text, const std::string& source);

}  // namespace assay::cli
