#include "store/metrics_json.h"

#include <cmath>
#include <limits>
#include <map>

namespace assay::store {

base::Json value_json(const std::string& unit, std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  if (unit == kFlag) return *value != 0;
  const bool counts = unit == "bytes" || unit == "tokens";
  if (counts && std::abs(*value) < 9e15) return static_cast<std::int64_t>(*value);
  return *value;
}

base::Json row_json(const MetricRow& row) {
  base::Json json{{"step", row.step}};
  for (const Metric& metric : row.values) json[metric.name] = value_json(metric.unit, metric.value);
  return json;
}

std::vector<MetricRow> rows_of(std::span<const MetricSeries> series) {
  std::map<std::int64_t, MetricRow> by_step;
  for (const MetricSeries& one : series) {
    for (const MetricPoint& point : one.points) {
      MetricRow& row = by_step[point.step];
      row.step = point.step;
      row.values.push_back(
          {one.name, one.unit, point.value.value_or(std::numeric_limits<double>::quiet_NaN())});
    }
  }
  std::vector<MetricRow> rows;
  rows.reserve(by_step.size());
  for (auto& [step, row] : by_step) rows.push_back(std::move(row));
  return rows;
}

}  // namespace assay::store
