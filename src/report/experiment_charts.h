// Charts of an experiment: every pair in the order in which they ran, the estimates, and every run.
#pragma once

#include <string>

#include "report/experiment_part.h"

namespace assay::report {

Chart pairs_chart(const ExperimentRecord& record, const compare::Comparison& comparison);
Chart estimates_chart(const ExperimentRecord& record, const compare::Comparison& comparison);
Chart runs_chart(const ExperimentRecord& record);

// Whether values of the experiment's metric are times.
bool is_time(const compare::Experiment& experiment);
// A value of the experiment's metric with its unit.
std::string metric_text(const compare::Experiment& experiment, double value);

}  // namespace assay::report
