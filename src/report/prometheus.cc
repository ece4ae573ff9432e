#include "report/prometheus.h"

#include <fmt/format.h>

#include <limits>
#include <map>

#include "base/prometheus.h"

namespace assay::report {

using base::MetricFamily;
using base::MetricLabels;
using base::MetricType;

std::string prometheus(const ReportedRun& run) {
  const MetricLabels labels = {{"run", fmt::format("{}", run.record.id)},
                               {"uid", run.record.uid},
                               {"name", run.record.name}};
  const auto with_process = [&](std::int64_t source) {
    MetricLabels all = labels;
    all.emplace_back("process", fmt::format("{}", source));
    return all;
  };
  std::map<std::string, MetricFamily> families;
  const auto family = [&](const std::string& name, std::string_view help) -> MetricFamily& {
    return families.try_emplace(name, name, MetricType::kGauge, help).first->second;
  };
  family("assay_run_up", "1 while the run is running")
      .add(labels, run.record.status == store::RunStatus::kRunning ? 1.0 : 0.0);
  const std::int64_t started_unix_ms = run.record.started_unix_ns / 1'000'000;
  family("assay_run_started_seconds", "start time, since 1970")
      .add(labels, static_cast<double>(started_unix_ms) / 1e3);
  family("assay_run_ran_seconds", "time since the start, or until the end").add(labels, ran_s(run));
  family("assay_run_step", "the last step that was measured");
  std::map<std::int64_t, std::int64_t> last_steps;
  // Names that differ may be equal as metric names: the first of a process counts.
  std::map<std::string, std::int64_t> written;
  for (const store::MetricSeries& series : run.metrics) {
    if (series.points.empty()) continue;
    std::int64_t& last = last_steps[series.source];
    last = std::max(last, series.points.back().step);
    const std::string name = "assay_run_" + base::metric_name_part(series.name);
    if (families.contains(name) && !written.contains(name)) continue;  // one of those above
    std::int64_t& source = written[name];
    if (source == series.source) continue;
    source = series.source;
    const std::string help =
        series.name + (series.unit.empty() ? "" : ", " + series.unit) + ", last value";
    family(name, help)
        .add(with_process(series.source),
             series.points.back().value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  for (const auto& [source, step] : last_steps) {
    family("assay_run_step", "").add(with_process(source), static_cast<double>(step));
  }
  std::string text;
  for (const auto& [name, one] : families) text += one.text();
  return text;
}

}  // namespace assay::report
