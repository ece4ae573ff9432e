// Charts of an experiment: every pair in the order in which they ran, the estimates, and every run.
#pragma once

#include <string>

#include "report/experiment_part.h"

namespace assay::report {

Chart pairs_chart(const ExperimentRecord& record, const compare::Comparison& comparison);
Chart estimates_chart(const ExperimentRecord& record, const compare::Comparison& comparison);
// Estimates in rows: those of the values of a scan.
struct ComparedValue {
  std::string name;
  const compare::Comparison* comparison = nullptr;
};
Chart compared_chart(const char* name, const std::string& title,
                     const compare::Experiment& experiment,
                     const std::vector<ComparedValue>& values);
// Every value of a scan against the first.
Chart values_chart(const ExperimentRecord& record);
Chart runs_chart(const ExperimentRecord& record);

// Whether values of the experiment's metric are times.
bool is_time(const compare::Experiment& experiment);
// A value of the experiment's metric with its unit.
std::string metric_text(const compare::Experiment& experiment, double value);

}  // namespace assay::report
