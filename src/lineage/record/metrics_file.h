// The file in which any program reports parameters and metrics of the run it is part of: JSON
// lines, named by the variable ASSAY_METRICS. `assay log-metric` and the Python package write it
// too.
//
//   {"parameters": {"lr": 0.1, "optimizer": "adam"}}
//   {"step": 3, "metrics": {"loss": 4.5, "diverged": false}}
//
// It is read when the run has ended, and stored in the same tables as the trainer's metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/environment.h"
#include "base/result.h"
#include "store/metrics.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

inline constexpr std::string_view kMetricsVariable = "ASSAY_METRICS";

struct Reported {
  store::RunParameters parameters;
  std::vector<store::MetricRow> rows;
  std::string problem;  // what could not be read, in one sentence; empty: nothing
};

// Parses one line. False: it has neither of the forms above.
bool read_metrics_line(std::string_view line, Reported& reported);

// Creates the file in the run's spool folder and sets kMetricsVariable for the command. Never an
// error: without it the run just has no metrics.
void offer_metrics_file(const std::filesystem::path& spool, base::Environment& environment);

// Adds the contents of a run's file to the store. Returns what could not be read or stored, as a
// sentence; empty: no problem.
std::string store_metrics_file(store::Store& store, const store::RunRecord& run);

}  // namespace assay::lineage
