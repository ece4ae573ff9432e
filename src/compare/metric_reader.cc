#include "compare/metric_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "compare/pairs.h"
#include "store/metrics.h"
#include "store/run_reader.h"

namespace assay::compare {
namespace {

constexpr const char* kStepEnds = "unix_s";  // written by assay train

constexpr base::Bytes kLargestOutput(std::int64_t{1} << 30U);
// Lines that arrive in less than this part of the time of their steps were buffered by the program.
constexpr double kBuffered = 0.5;

template <class Is>
bool any_metric(const Experiment& e, const Is& is) {
  return is(e.metric) || (e.steps && is(*e.steps)) || (e.quality && is(*e.quality));
}

// When the output up to `offset` had arrived.
double arrival(std::span<const OutputMoment> moments, std::size_t offset) {
  const auto found =
      std::lower_bound(moments.begin(), moments.end(), offset,
                       [](const OutputMoment& m, std::size_t at) { return m.end < at; });
  return found == moments.end() ? moments.back().seconds : found->seconds;
}

std::string step_range(std::span<const StepValue> steps) {
  return steps.size() == 1 ? fmt::format("step {}", steps.front().step)
                           : fmt::format("steps {} to {}", steps.front().step, steps.back().step);
}

}  // namespace

base::Result<StoredMetrics> StoredMetrics::open(const std::filesystem::path& directory) {
  ASSAY_TRY(const auto found, store::find(directory));
  ASSAY_TRY(store::Store store, store::Store::open(found ? *found : store::location_in(directory),
                                                   store::StoreProgram{}, store::Access::kRead));
  return StoredMetrics(std::move(store));
}

base::Result<std::int64_t> StoredMetrics::newest() {
  ASSAY_TRY(const std::vector<store::RunRecord> runs, store::list_runs(store_, {.limit = 1}));
  return runs.empty() ? std::int64_t{0} : static_cast<std::int64_t>(runs.front().id);
}

base::Result<void> StoredMetrics::remember() {
  ASSAY_TRY(before_, newest());
  return {};
}

base::Result<std::vector<StepValue>> StoredMetrics::step_ends() {
  ASSAY_TRY(const std::int64_t run, newest());
  ASSAY_TRY(const auto points, store::load_series(store_, run, kStepEnds));
  std::vector<StepValue> ends;
  for (const store::MetricPoint& point : points) {
    if (point.value && run > before_) ends.push_back({point.step, *point.value, 0});
  }
  return ends;
}

base::Result<std::vector<StepValue>> StoredMetrics::steps(const std::string& name) {
  ASSAY_TRY(const std::int64_t run, newest());
  if (run <= before_) {
    return base::fail(
        base::unfit_error("",
                          fmt::format("'stored:{}': the command recorded no run in {}", name,
                                      store_.location().project.string()),
                          "run it with assay run or assay train"));
  }
  ASSAY_TRY(const std::vector<store::MetricPoint> points, store::load_series(store_, run, name));
  std::vector<StepValue> steps;
  for (const store::MetricPoint& point : points) {
    if (point.value) steps.push_back({point.step, *point.value, 0});
  }
  if (steps.empty()) {
    return base::fail(
        base::unfit_error("", fmt::format("'stored:{}': run {} has no such metric", name, run),
                          "assay show --metrics lists its metrics"));
  }
  return steps;
}

void split_time(double step_seconds, const StepEnds& ends, ArmRun& run) {
  double stepping = 0;
  for (std::size_t i = 1; i < run.steps.size(); ++i) stepping += run.steps[i].value * step_seconds;
  if (ends.last - ends.first < kBuffered * stepping) return;
  run.startup_s = std::max(0.0, ends.first - run.steps.front().value * step_seconds);
  run.after_s = std::max(0.0, run.wall_s - ends.last);
}

void split_time(double step_seconds, std::span<const OutputMoment> moments, ArmRun& run) {
  if (run.steps.empty() || moments.empty()) return;
  const StepEnds ends{.first = arrival(moments, run.steps.front().offset),
                      .last = arrival(moments, run.steps.back().offset)};
  split_time(step_seconds, ends, run);
}

bool reads_output(const Experiment& experiment) {
  return any_metric(experiment, [](const ComparedMetric& m) {
    return m.kind == MetricKind::kRegex || m.kind == MetricKind::kJson;
  });
}

base::Result<MetricReader> MetricReader::of(const Experiment& experiment,
                                            const Interrupts& interrupts) {
  MetricReader reader(experiment, interrupts);
  if (any_metric(experiment,
                 [](const ComparedMetric& m) { return m.kind == MetricKind::kStored; })) {
    ASSAY_TRY(reader.store_, StoredMetrics::open(experiment.directory));
  }
  return reader;
}

base::Result<void> MetricReader::begin() {
  return store_ ? store_->remember() : base::Result<void>();
}

SearchLimit MetricReader::search_limit() const {
  return SearchLimit([this] { return interrupts_->happened(); });
}

base::Result<void> MetricReader::read(const ProcessOutcome& outcome, const ProcessRequest& request,
                                      std::int64_t started_ns, ArmRun& record) {
  const Experiment& e = *experiment_;
  OutputTexts texts;
  if (reads_output(e)) {
    ASSAY_TRY(texts.out, base::read_file(request.out, kLargestOutput));
    ASSAY_TRY(texts.err, base::read_file(request.err, kLargestOutput));
  }
  if (e.steps) {
    ASSAY_TRY_VOID(read_steps(texts, outcome, started_ns, record));
    record.value = steady_step(record.steps);
  } else {
    ASSAY_TRY(record.value, value_of(e.metric, texts, record));
  }
  if (!(record.value > 0)) {
    return base::fail(
        base::unfit_error("", fmt::format("'{}' is {}; a ratio needs a value above 0",
                                          base::shortened(e.metric.text(), 100), record.value)));
  }
  if (e.quality) {
    ASSAY_TRY(record.quality, quality_of(*e.quality, texts, record));
  }
  return {};
}

base::Result<void> MetricReader::read_steps(const OutputTexts& texts, const ProcessOutcome& outcome,
                                            std::int64_t started_ns, ArmRun& record) {
  const ComparedMetric& metric = *experiment_->steps;
  if (metric.kind == MetricKind::kStored) return read_stored_steps(started_ns, record);
  ASSAY_TRY(FoundSteps found, steps_in(metric, {texts.out, texts.err}, search_limit()));
  record.steps = std::move(found.steps);
  split_time(experiment_->step_seconds, found.in_err ? outcome.err_moments : outcome.moments,
             record);
  return {};
}

base::Result<void> MetricReader::read_stored_steps(std::int64_t started_ns, ArmRun& record) {
  ASSAY_TRY(record.steps, stored_above_zero(*experiment_->steps));
  ASSAY_TRY(const std::vector<StepValue> ends, store_->step_ends());
  const auto ended = [&](std::int64_t step) -> std::optional<double> {
    const auto found = std::lower_bound(
        ends.begin(), ends.end(), step,
        [](const StepValue& end, std::int64_t number) { return end.step < number; });
    if (found == ends.end() || found->step != step) return std::nullopt;
    return found->value - static_cast<double>(started_ns) / 1e9;
  };
  const auto first = ended(record.steps.front().step);
  const auto last = ended(record.steps.back().step);
  if (first && last) {
    split_time(experiment_->step_seconds, StepEnds{*first, *last}, record);
  }
  return {};
}

base::Result<std::vector<StepValue>> MetricReader::stored_above_zero(const ComparedMetric& metric) {
  ASSAY_TRY(std::vector<StepValue> steps, store_->steps(metric.pattern));
  std::erase_if(steps, [](const StepValue& step) { return !(step.value > 0); });
  if (steps.empty()) {
    return base::fail(base::unfit_error(
        "", fmt::format("'{}' has no value above 0", base::shortened(metric.text(), 100))));
  }
  return steps;
}

base::Result<double> MetricReader::value_of(const ComparedMetric& metric, const OutputTexts& texts,
                                            const ArmRun& record) {
  switch (metric.kind) {
    case MetricKind::kWall:
      return record.wall_s;
    case MetricKind::kCpu:
      return record.cpu_s;
    case MetricKind::kStored: {
      ASSAY_TRY(const std::vector<StepValue> steps, stored_above_zero(metric));
      return steady_step(steps);
    }
    default:
      return value_in(metric, {texts.out, texts.err}, search_limit());
  }
}

// The last value, such as the final loss, where a metric takes the median over steps.
base::Result<double> MetricReader::quality_of(const ComparedMetric& metric,
                                              const OutputTexts& texts, const ArmRun& record) {
  if (metric.kind != MetricKind::kStored) return value_of(metric, texts, record);
  ASSAY_TRY(const std::vector<StepValue> steps, store_->steps(metric.pattern));
  return steps.back().value;
}

base::Result<void> check_common_steps(const Experiment& experiment, std::span<const ArmRun> block) {
  if (!experiment.steps) return {};
  const auto baseline =
      std::find_if(block.begin(), block.end(), [](const ArmRun& run) { return run.arm == 0; });
  if (baseline == block.end()) return {};
  for (const ArmRun& run : block) {
    if (match_steps(baseline->steps, run.steps)) continue;
    return base::fail(base::unfit_error(
        fmt::format("arm {}", experiment.name_of(run.arm)),
        fmt::format("has no steady step in common with {}: {} has {}, {} has {}",
                    experiment.name_of(0), experiment.name_of(0), step_range(baseline->steps),
                    experiment.name_of(run.arm), step_range(run.steps)),
        "steps are matched by number: all arms must number them alike"));
  }
  return {};
}

}  // namespace assay::compare
