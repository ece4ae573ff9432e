#include "report/reported_run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/statistics.h"

namespace assay::report {

const store::MetricSeries* series_of(const ReportedRun& run, std::string_view name,
                                     std::int64_t source) {
  for (const store::MetricSeries& series : run.metrics) {
    if (series.name == name && (source == 0 || series.source == source)) return &series;
  }
  return nullptr;
}

std::optional<SeriesSummary> summary_of(const store::MetricSeries* series) {
  if (series == nullptr) return std::nullopt;
  std::vector<double> values;
  values.reserve(series->points.size());
  SeriesSummary summary;
  for (const store::MetricPoint& point : series->points) {
    if (point.value) {
      values.push_back(*point.value);
      summary.sum += *point.value;
      summary.last = *point.value;
    } else {
      ++summary.missing;
    }
  }
  if (values.empty()) return std::nullopt;
  summary.count = static_cast<std::int64_t>(values.size());
  summary.mean = summary.sum / static_cast<double>(values.size());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  summary.least = *least;
  summary.most = *most;
  constexpr std::array<double, 2> kShares = {0.9, 0.99};
  const std::vector<double> high = base::quantiles(values, kShares);
  summary.p90 = high[0];
  summary.p99 = high[1];
  summary.median = base::median(std::move(values));
  return summary;
}

std::vector<StepEnd> step_ends(const ReportedRun& run) {
  const store::MetricSeries* when = series_of(run, "unix_s");
  std::vector<StepEnd> ends;
  if (when == nullptr) return ends;
  const store::MetricSeries* took = series_of(run, "seconds", when->source);
  const double began = static_cast<double>(run.record.started_unix_ns) / 1e9;
  std::size_t next = 0;
  ends.reserve(when->points.size());
  for (const store::MetricPoint& point : when->points) {
    if (!point.value) continue;
    StepEnd& end = ends.emplace_back(StepEnd{point.step, std::max(0.0, *point.value - began), 0});
    if (took == nullptr) continue;
    while (next < took->points.size() && took->points[next].step < point.step) ++next;
    if (next < took->points.size() && took->points[next].step == point.step) {
      end.took_s = std::max(0.0, took->points[next].value.value_or(0));
    }
  }
  return ends;
}

double ran_s(const ReportedRun& run) {
  const bool running = run.record.status == store::RunStatus::kRunning;
  const double until_seen =
      static_cast<double>(run.seen_unix_ns - run.record.started_unix_ns) / 1e9;
  double ran = running ? std::max(0.0, until_seen) : run.record.duration_s;
  const store::MetricSeries* when = series_of(run, "unix_s");
  if (when != nullptr && !when->points.empty() && when->points.back().value) {
    ran = std::max(
        ran, *when->points.back().value - static_cast<double>(run.record.started_unix_ns) / 1e9);
  }
  return ran;
}

TimeUnit run_unit(double seconds) {
  if (seconds > 3 * 3600) return {"hours", 1.0 / 3600};
  if (seconds > 3 * 60) return {"minutes", 1.0 / 60};
  return {"seconds", 1};
}

Outliers outliers_of(const store::MetricSeries& series) {
  constexpr double kFar = 5;
  constexpr double kTimesMiddle = 3;
  const auto all = summary_of(&series);
  Outliers found;
  if (!all || all->median <= 0) return found;
  const double above =
      std::max(all->median + kFar * (all->p99 - all->median), kTimesMiddle * all->median);
  if (all->most <= above) return found;
  found.above = above;
  for (const store::MetricPoint& point : series.points) {
    if (!point.value || *point.value <= above) continue;
    ++found.count;
    if (*point.value > found.largest) {
      found.largest = *point.value;
      found.step = point.step;
    }
  }
  return found;
}

std::vector<CheckpointLeft> checkpoints_of(const store::RunRecord& record) {
  constexpr std::string_view kFolder = "/checkpoints/step-";
  std::map<std::int64_t, CheckpointLeft> found;
  for (const store::Output& output : record.outputs) {
    const std::size_t at = output.path.rfind(kFolder);
    if (at == std::string::npos || output.status == store::OutputStatus::kDeleted) continue;
    const char* begin = output.path.data() + at + kFolder.size();
    const char* end = output.path.data() + output.path.size();
    std::int64_t step = 0;
    const auto [stop, error] = std::from_chars(begin, end, step);
    if (error != std::errc() || stop == end || *stop != '/') continue;
    // The manifest lists the files but does not count as one, as in `assay checkpoint list`.
    if (std::string_view(stop, end) == "/manifest.json") continue;
    CheckpointLeft& one = found[step];
    one.step = step;
    ++one.files;
    one.bytes += output.size;
  }
  std::vector<CheckpointLeft> list;
  for (const auto& [step, one] : found) list.push_back(one);
  return list;
}

std::optional<double> joules_of(const ReportedRun& run) {
  std::optional<double> joules;
  for (const store::MetricSeries& series : run.metrics) {
    if (series.name != "joules") continue;
    if (const auto summary = summary_of(&series)) joules = joules.value_or(0) + summary->sum;
  }
  return joules;
}

}  // namespace assay::report
