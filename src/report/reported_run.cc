#include "report/reported_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace assay::report {

const store::MetricSeries* series_of(const ReportedRun& run, std::string_view name,
                                     std::int64_t source) {
  for (const store::MetricSeries& series : run.metrics) {
    if (series.name == name && (source == 0 || series.source == source)) return &series;
  }
  return nullptr;
}

std::optional<Summary> summary_of(const store::MetricSeries* series) {
  if (series == nullptr) return std::nullopt;
  std::vector<double> values;
  values.reserve(series->points.size());
  Summary summary;
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
  // The places that plot::quantile() takes, found without sorting: runs have a hundred thousand
  // steps, and a dozen series. What is left of a place is not above it.
  auto sorted_to = values.begin();
  const auto value_at = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(1.0, rank)) - 1;
    if (place >= sorted_to) std::nth_element(sorted_to, place, values.end());
    sorted_to = place;
    return *place;
  };
  summary.median = value_at(0.5);
  summary.p90 = value_at(0.9);
  summary.p99 = value_at(0.99);
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

std::string figure(double value) {
  const bool large = std::abs(value) >= 1e3 && std::abs(value) < 1e15;
  return large ? base::grouped(std::llround(value)) : fmt::format("{:.4g}", value);
}

std::string amount(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "—";
  const bool countable = std::abs(value) < 9e18;
  if (unit == "s") {
    return (value < 0 ? "-" : "") + base::to_text(base::Seconds(std::abs(value)));
  }
  if (unit == "bytes" && countable) return base::to_text(base::Bytes(std::llround(value)));
  if (unit == "fraction") return fmt::format("{:.1f} %", 100 * value);
  if (unit == "J" && std::abs(value) >= 1e3) {
    return std::abs(value) >= 1e6 ? fmt::format("{:.4g} MJ", value / 1e6)
                                  : fmt::format("{:.4g} kJ", value / 1e3);
  }
  if (unit.starts_with("tokens") && countable && std::abs(value) >= 100) {
    return fmt::format("{} {}", base::grouped(std::llround(value)), unit);
  }
  return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

}  // namespace assay::report
