#include "assay/shared/reported_values.h"

#include <fmt/format.h>

#include "store/metrics.h"

namespace assay::cli {

base::Result<lineage::ReportedValues> reported_values(store::Store& store, store::RunId run) {
  lineage::ReportedValues values;
  ASSAY_TRY(values.parameters, store::load_parameters(store, run));
  ASSAY_TRY(const std::vector<store::MetricSeries> metrics, store::load_metrics(store, run));
  for (const store::MetricSeries& series : metrics) {
    const std::optional<double>& last = series.points.back().value;
    values.metrics[series.name] = !last                         ? "not finite"
                                  : series.unit == store::kFlag ? (*last != 0 ? "true" : "false")
                                                                : fmt::format("{}", *last);
  }
  return values;
}

std::optional<std::string> value_of(const lineage::ReportedValues& values,
                                    const std::string& name) {
  for (const auto* from : {&values.parameters, &values.metrics}) {
    if (const auto found = from->find(name); found != from->end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace assay::cli
