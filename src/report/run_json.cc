#include "report/run_json.h"

#include <cmath>

#include "base/clock.h"
#include "plot/downsample.h"
#include "report/run_ranks.h"
#include "store/metrics.h"

namespace assay::report {
namespace {

using base::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json series_json(const store::MetricSeries& series, std::size_t most_points) {
  std::vector<double> values;
  values.reserve(series.points.size());
  for (const store::MetricPoint& point : series.points) {
    values.push_back(point.value.value_or(std::nan("")));
  }
  Json steps = Json::array();
  Json kept = Json::array();
  for (const std::size_t i : plot::downsample(values, most_points)) {
    steps.push_back(series.points[i].step);
    kept.push_back(store::value_json(series.unit, series.points[i].value));
  }
  return {{"name", series.name},       {"unit", series.unit},
          {"source", series.source},   {"points", series.points.size()},
          {"steps", std::move(steps)}, {"values", std::move(kept)}};
}

Json git_json(const std::optional<store::Git>& git) {
  if (!git) return nullptr;
  return {{"commit", git->commit}, {"branch", git->branch}, {"dirty", git->dirty}};
}

Json gpu_json(const store::GpuWork& work) {
  Json use = Json::array();
  for (const store::GpuUse& one : work.use) {
    use.push_back({{"quantity", one.quantity}, {"calls", one.calls}, {"amount", one.amount}});
  }
  Json memory = Json::array();
  for (const store::GpuMemory& one : work.memory) {
    memory.push_back({{"device", one.device}, {"peak_bytes", one.peak_bytes}});
  }
  Json collectives = Json::array();
  for (const store::GpuCollectiveUse& one : work.collectives) {
    collectives.push_back({{"communicator", one.communicator},
                           {"ranks", one.ranks},
                           {"operation", one.operation},
                           {"type", one.type},
                           {"calls", one.calls},
                           {"bytes", one.bytes}});
  }
  return {{"use", std::move(use)},
          {"memory", std::move(memory)},
          {"collectives", std::move(collectives)}};
}

// 0 in a Predicted means that there is no prediction.
Json if_predicted(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json predicted_json(const ReportedRun& run) {
  if (!run.predicted) return nullptr;
  const Predicted& p = *run.predicted;
  Json parts = Json::object();
  for (const auto& [name, seconds] : p.parts_s) parts[name] = seconds;
  return {{"of", p.of},
          {"source", p.source},
          {"step_s", if_predicted(p.step_s)},
          {"step_low_s", if_predicted(p.step_interval_s.low)},
          {"step_high_s", if_predicted(p.step_interval_s.high)},
          {"tokens_per_s", if_predicted(p.tokens_per_s)},
          {"mfu", if_predicted(p.mfu)},
          {"mfu_6n", if_predicted(p.mfu_6n)},
          {"memory_bytes", if_predicted(p.memory_bytes)},
          {"parts_s", std::move(parts)}};
}

}  // namespace

Json run_json(const ReportedRun& run, std::size_t most_points) {
  const store::RunRecord& record = run.record;
  Json metrics = Json::array();
  for (const store::MetricSeries& series : run.metrics) {
    metrics.push_back(series_json(series, most_points));
  }
  Json checkpoints = Json::array();
  for (const CheckpointLeft& one : checkpoints_of(record)) {
    checkpoints.push_back({{"step", one.step}, {"files", one.files}, {"bytes", one.bytes}});
  }
  return {{"run", record.id},
          {"uid", record.uid},
          {"name", record.name},
          {"command", run.command},
          {"directory", record.directory},
          {"status", store::name_of(record.status)},
          {"exit_code", or_null(record.exit_code)},
          {"signal", or_null(record.signal)},
          {"started_at", base::utc_millis_text(record.started_unix_ns)},
          {"ran_s", ran_s(run)},
          {"complete", record.complete},
          {"usage",
           {{"user_s", record.usage.user_s},
            {"system_s", record.usage.system_s},
            {"max_rss_bytes", record.usage.max_rss_bytes},
            {"read_bytes", record.usage.read_bytes},
            {"written_bytes", record.usage.written_bytes}}},
          {"git", git_json(record.context.git)},
          {"machine", record.context.machine},
          {"gpu", gpu_json(record.gpu)},
          {"checkpoints", std::move(checkpoints)},
          {"predicted", predicted_json(run)},
          {"ranks", ranks_json(run)},
          {"dollars_per_hour", or_null(run.rates.dollars_per_hour)},
          {"grams_per_kwh", or_null(run.rates.grams_per_kwh)},
          {"joules", or_null(joules_of(run))},
          {"metrics", std::move(metrics)}};
}

}  // namespace assay::report
