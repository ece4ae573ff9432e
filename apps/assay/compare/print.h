// Results of experiments as tables.
#pragma once

#include <string>

#include "assay/compare/json.h"
#include "cli/verb.h"

namespace assay::cli {

void print_experiment(const Session& session, const ExperimentResult& result);
void print_scan(const Session& session, const ScanResult& scan);

// A value of the experiment's metric; a dash for an arm without runs.
std::string value_text(const compare::Experiment& experiment, const compare::ArmSummary& arm,
                       double value);

}  // namespace assay::cli
