#include "report/run_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/json.h"
#include "base/prometheus.h"

namespace assay::report {

using base::MetricFamily;
using base::MetricLabels;
using base::MetricType;

namespace {

constexpr std::array kCounters = {"loss",  "validation_loss", "tokens_per_s",
                                  "mfu",   "memory_bytes",    "host_bytes",
                                  "watts", "sm_mhz",          "gradient_norm"};
// Rows of the trace; those of processes come after them.
enum Row : int { kPhases = 1, kSteps, kValidations, kCheckpoints, kFirstProcess };

// Appends events as text: a run of a hundred thousand steps has half a million, too many for a
// tree.
class Trace {
 public:
  void name_row(int row, std::string_view name) {
    event(fmt::format(R"("ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}})", row,
                      text(name)));
    event(fmt::format(
        R"("ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}})",
        row));
  }
  void name_process(std::string_view name) {
    event(
        fmt::format(R"("ph":"M","pid":1,"name":"process_name","args":{{"name":{}}})", text(name)));
  }
  void slice(int row, std::string_view name, double from_s, double took_s) {
    event(fmt::format(R"("ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{})", row,
                      micros(from_s), micros(took_s), text(name)));
  }
  void moment(int row, std::string_view name, double at_s) {
    event(fmt::format(R"("ph":"i","s":"t","pid":1,"tid":{},"ts":{},"name":{})", row, micros(at_s),
                      text(name)));
  }
  void counter(std::string_view name, double at_s, double value) {
    event(fmt::format(R"("ph":"C","pid":1,"ts":{},"name":{},"args":{{"value":{}}})", micros(at_s),
                      text(name), value));
  }
  std::string done() && { return std::move(text_) + "\n],\"displayTimeUnit\":\"ms\"}\n"; }

 private:
  static std::string micros(double seconds) { return fmt::format("{:.3f}", seconds * 1e6); }
  // As a JSON string, whatever the bytes are.
  static std::string text(std::string_view name) {
    return base::Json(name).dump(-1, ' ', false, base::Json::error_handler_t::replace);
  }
  void event(std::string_view inside) {
    text_ += first_ ? "\n{" : ",\n{";
    text_ += inside;
    text_ += '}';
    first_ = false;
  }

  std::string text_ = "{\"traceEvents\":[";
  bool first_ = true;
};

double when(const std::vector<StepEnd>& ends, std::int64_t step) {
  const auto end = std::lower_bound(ends.begin(), ends.end(), step,
                                    [](const StepEnd& e, std::int64_t s) { return e.step < s; });
  return ends.empty() ? 0 : (end == ends.end() ? ends.back() : *end).at_s;
}

void add_steps(const ReportedRun& run, const std::vector<StepEnd>& ends, Trace& trace) {
  if (ends.empty()) return;
  trace.name_row(kSteps, "steps");
  for (const StepEnd& end : ends) {
    const double from = std::max(0.0, end.at_s - end.took_s);
    trace.slice(kSteps, fmt::format("step {}", end.step), from, end.at_s - from);
  }
  const double first = std::max(0.0, ends.front().at_s - ends.front().took_s);
  trace.slice(kPhases, "start-up", 0, first);
  trace.slice(kPhases, "training", first, ends.back().at_s - first);
  trace.slice(kPhases, "after the last step", ends.back().at_s,
              std::max(0.0, ran_s(run) - ends.back().at_s));
  if (const store::MetricSeries* took = series_of(run, "validation_seconds")) {
    trace.name_row(kValidations, "validation");
    for (const store::MetricPoint& point : took->points) {
      trace.slice(kValidations, fmt::format("validation after step {}", point.step),
                  when(ends, point.step), std::max(0.0, point.value.value_or(0)));
    }
  }
  const std::vector<CheckpointLeft> saved = checkpoints_of(run.record);
  if (saved.empty()) return;
  trace.name_row(kCheckpoints, "checkpoints");
  for (const CheckpointLeft& one : saved) {
    trace.moment(kCheckpoints, fmt::format("checkpoint of step {}", one.step),
                 when(ends, one.step));
  }
}

void add_counters(const ReportedRun& run, const std::vector<StepEnd>& ends, Trace& trace) {
  if (ends.empty()) return;
  for (const char* name : kCounters) {
    const store::MetricSeries* series = series_of(run, name);
    if (series == nullptr) continue;
    std::size_t next = 0;
    for (const store::MetricPoint& point : series->points) {
      while (next + 1 < ends.size() && ends[next].step < point.step) ++next;
      if (point.value) trace.counter(name, ends[next].at_s, *point.value);
    }
  }
}

void add_processes(const ReportedRun& run, Trace& trace) {
  int row = kFirstProcess;
  for (const store::ProcessRecord& process : run.record.processes) {
    const double from = static_cast<double>(process.started_ns) / 1e9;
    const double to = process.ended_ns ? static_cast<double>(*process.ended_ns) / 1e9 : ran_s(run);
    const std::string name = process.program.empty() ? "forked" : process.program;
    trace.name_row(row, fmt::format("process {}", process.pid));
    trace.slice(row++, name, from, std::max(0.0, to - from));
  }
}

}  // namespace

std::string perfetto(const ReportedRun& run) {
  Trace trace;
  trace.name_process(fmt::format("run {}: {}", run.record.id, run.command));
  trace.name_row(kPhases, "run");
  trace.slice(kPhases, store::name_of(run.record.status), 0, ran_s(run));
  const std::vector<StepEnd> ends = step_ends(run);
  add_steps(run, ends, trace);
  add_counters(run, ends, trace);
  add_processes(run, trace);
  return std::move(trace).done();
}

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
