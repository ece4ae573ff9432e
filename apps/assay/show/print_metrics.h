// Metrics that a run reported about itself, as text and JSON.
#pragma once

#include <vector>

#include "base/json.h"
#include "cli/verb.h"
#include "store/metrics.h"

namespace assay::cli {

// A table per source: first, last, median, mean and largest value of each quantity; nothing if
// nothing was measured.
void print_metrics(const Session& session, const std::vector<store::MetricSeries>& metrics);
base::Json metrics_summary_json(const std::vector<store::MetricSeries>& metrics);

// Step by step: all rows as JSON, and at most `rows` of them, evenly chosen, as a table.
void print_metric_rows(const Session& session, store::RunId run,
                       const std::vector<store::MetricSeries>& metrics, std::size_t rows);

}  // namespace assay::cli
