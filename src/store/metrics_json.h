// Rows of metrics as JSON, the same words whether they come from a run or out of the store.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"
#include "store/metrics.h"

namespace assay::store {

// {"step": 3, "loss": 4.5, …}: flags as true or false, counts as whole numbers, and null for what
// is no finite number.
base::Json row_json(const MetricRow& row);
base::Json value_json(const std::string& unit, std::optional<double> value);

// What stands in series of one source, step by step.
std::vector<MetricRow> rows_of(std::span<const MetricSeries> series);

}  // namespace assay::store
