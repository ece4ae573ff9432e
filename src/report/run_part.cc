#include "report/run_part.h"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "plot/downsample.h"
#include "report/numbers.h"
#include "report/run_sections.h"
#include "store/metrics.h"

namespace assay::report {
namespace {

using base::Json;

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

// The data behind the part. Environment and diff are left out, because pages are shared.
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
          {"exit_code", base::or_null(record.exit_code)},
          {"signal", base::or_null(record.signal)},
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
          {"dollars_per_hour", base::or_null(run.rates.dollars_per_hour)},
          {"grams_per_kwh", base::or_null(run.rates.grams_per_kwh)},
          {"joules", base::or_null(joules_of(run))},
          {"metrics", std::move(metrics)}};
}

constexpr std::size_t kMostTitle = 100;  // columns

// When an interrupted run ended is not known, only when it was last seen.
std::string ran_text(const ReportedRun& run) {
  const bool interrupted = run.record.status == store::RunStatus::kInterrupted;
  return (interrupted ? "at least " : "") + base::to_text(base::Seconds(ran_s(run)));
}

Verdict verdict_of_run(const ReportedRun& run) {
  const store::RunRecord& record = run.record;
  Verdict verdict{.word = std::string(store::name_of(record.status))};
  switch (record.status) {
    case store::RunStatus::kDone:
      verdict.rating = Rating::kGood;
      break;
    case store::RunStatus::kFailed:
      verdict.rating = Rating::kBad;
      break;
    case store::RunStatus::kInterrupted:
    case store::RunStatus::kRunning:
      verdict.rating = Rating::kOpen;
      break;
  }
  verdict.text = fmt::format("{} {}", record.status == store::RunStatus::kRunning ? "for" : "after",
                             ran_text(run));
  if (record.signal) {
    verdict.text += fmt::format(", by signal {}", *record.signal);
  } else if (record.exit_code && *record.exit_code != 0) {
    verdict.text += fmt::format(", with exit code {}", *record.exit_code);
  }
  verdict.text += record.complete ? "; all files it read and wrote were recorded"
                                  : "; some files it read or wrote were not recorded";
  return verdict;
}

void add_fact(Facts& facts, const ReportedRun& run, const char* series, const char* name,
              double SeriesSummary::*what, const char* note) {
  const store::MetricSeries* found = series_of(run, series);
  const auto summary = summary_of(found);
  if (summary) facts.facts.push_back({name, amount((*summary).*what, found->unit), note});
}

Section summary_section(const ReportedRun& run) {
  Facts facts;
  facts.facts.push_back(
      {"ran", ran_text(run), "since " + base::utc_text(run.record.started_unix_ns)});
  if (const auto steps = summary_of(series_of(run, "seconds"))) {
    const store::MetricSeries* series = series_of(run, "seconds");
    facts.facts.push_back({"steps", base::grouped(steps->count),
                           fmt::format("{} to {}", base::grouped(series->points.front().step),
                                       base::grouped(series->points.back().step))});
    facts.facts.push_back({"step", amount(steps->median, "s"),
                           fmt::format("median; p99 {}", amount(steps->p99, "s"))});
  }
  if (const auto rate = summary_of(series_of(run, "tokens_per_s"))) {
    facts.facts.push_back(
        {"throughput", base::grouped(std::llround(rate->median)), "tokens per second, median"});
  }
  add_fact(facts, run, "mfu", "utilisation (MFU)", &SeriesSummary::median,
           "median, of the bf16 peak (on CPUs fp32); counting matmul parameters");
  add_fact(facts, run, "loss", "loss", &SeriesSummary::last, "last step");
  add_fact(facts, run, "validation_loss", "validation loss", &SeriesSummary::last, "last");
  add_fact(facts, run, "memory_bytes", "memory", &SeriesSummary::most, "most in use");
  add_fact(facts, run, "watts", "power", &SeriesSummary::mean, "mean over steps");
  if (const auto joules = joules_of(run)) {
    facts.facts.push_back({"energy", amount(*joules, "J"), "measured"});
  }
  const store::Usage& usage = run.record.usage;
  if (usage.user_s + usage.system_s > 0) {
    facts.facts.push_back({"processor time",
                           base::to_text(base::Seconds(usage.user_s + usage.system_s)),
                           "of all processes"});
  }
  if (usage.max_rss_bytes > 0) {
    facts.facts.push_back(
        {"largest process", base::to_text(base::Bytes(usage.max_rss_bytes)), "resident"});
  }
  return {"Summary", {std::move(facts)}};
}

}  // namespace

PagePart run_part(const ReportedRun& run, std::size_t most_points) {
  const store::RunRecord& record = run.record;
  PagePart part{
      .kind = "run",
      .title = base::shortened_middle(base::printable(run.command), kMostTitle),
      .subtitle = record.name.empty()
                      ? fmt::format("run {} in {}", record.id, record.directory)
                      : fmt::format("run {}: {}, in {}", record.id, record.name, record.directory),
      .verdict = verdict_of_run(run)};
  add_section(part, summary_section(run));
  add_section(part, steps_section(run));
  add_section(part, curves_section(run));
  add_section(part, times_section(run));
  add_section(part, events_section(run));
  add_section(part, predicted_section(run));
  add_section(part, ranks_section(run));
  add_section(part, cost_section(run));
  add_section(part, gpu_section(run));
  add_section(part, lineage_section(run));
  add_section(part, fingerprint_section(run));
  add_section(part, metrics_section(run));
  part.data = run_json(run, most_points);
  return part;
}

}  // namespace assay::report
