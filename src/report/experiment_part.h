// An experiment of `assay compare` as a part of a page.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "compare/findings.h"
#include "compare/journal.h"
#include "report/page.h"

namespace assay::report {

struct ExperimentRecord {
  const compare::Measured& measured;
  const compare::Findings& findings;
  std::string directory;
  std::string stopped;  // why it ended, as a clause; empty: it was not ended, or nobody knows
  std::vector<std::string> preflight;
  base::Json data;  // as `assay compare --json` prints it
};

// There must be a finished pair.
Part experiment_part(ExperimentRecord record);

// experiment_charts.cc: of one comparison; every pair in the order in which they ran, the
// estimates, and every run.
Chart pairs_chart(const ExperimentRecord& record, const compare::Comparison& comparison);
Chart estimates_chart(const ExperimentRecord& record, const compare::Comparison& comparison);
Chart runs_chart(const ExperimentRecord& record);

// A value of the experiment's metric, for people.
std::string metric_text(const compare::Experiment& experiment, double value);

}  // namespace assay::report
