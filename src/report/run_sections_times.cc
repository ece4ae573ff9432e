#include "report/run_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plot/distribution.h"
#include "plot/stacked_bars.h"
#include "plot/timeline.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostMoments = 200;
constexpr std::size_t kMostSlices = 200;
constexpr std::size_t kMostListed = 20;

// The unit for steps of about this length.
TimeUnit step_unit(double seconds) {
  if (seconds >= 1) return {"seconds", 1};
  if (seconds >= 1e-3) return {"milliseconds", 1e3};
  return {"microseconds", 1e6};
}

double sum_of(const ReportedRun& run, std::string_view name) {
  const auto summary = summary_of(series_of(run, name));
  return summary ? summary->sum : 0;
}

struct RunTimes {
  double start_up = 0;
  double steps = 0;
  double validation = 0;
  double between = 0;  // loading data, saving, logging
  double after = 0;

  [[nodiscard]] double all() const { return start_up + steps + validation + between + after; }
};

std::optional<RunTimes> times_of(const ReportedRun& run) {
  const std::vector<StepEnd> ends = step_ends(run);
  if (ends.empty()) return std::nullopt;
  RunTimes times;
  for (const StepEnd& end : ends) times.steps += end.took_s;
  times.start_up = std::max(0.0, ends.front().at_s - ends.front().took_s);
  times.validation = sum_of(run, "validation_seconds");
  const double end = ran_s(run);
  times.after = std::max(0.0, end - ends.back().at_s);
  const double known = times.start_up + times.steps + times.validation + times.after;
  times.between = std::max(0.0, end - known);
  return times;
}

// Steps that follow each other without a visible pause.
std::vector<plot::Slice> slices_of(const std::vector<StepEnd>& ends, double all_s) {
  double pause = all_s / 500;
  std::vector<plot::Slice> slices;
  do {  // allow longer pauses until there are few enough slices
    slices.clear();
    std::int64_t first = 0;
    for (const StepEnd& end : ends) {
      const double from = std::max(0.0, end.at_s - end.took_s);
      if (!slices.empty() && from - slices.back().to <= pause) {
        slices.back().to = std::max(slices.back().to, end.at_s);
      } else {
        slices.push_back({from, end.at_s});
        first = end.step;
      }
      slices.back().label = fmt::format("steps {} to {}", first, end.step);
    }
    pause *= 2;
  } while (slices.size() > kMostSlices);
  return slices;
}

double at_step(const std::vector<StepEnd>& ends, std::int64_t step) {
  const auto end = std::lower_bound(ends.begin(), ends.end(), step,
                                    [](const StepEnd& e, std::int64_t s) { return e.step < s; });
  return (end == ends.end() ? ends.back() : *end).at_s;
}

std::vector<std::int64_t> left_out_steps(const ReportedRun& run) {
  std::vector<std::int64_t> steps;
  const store::MetricSeries* flags = series_of(run, "left_out");
  if (flags == nullptr) return steps;
  for (const store::MetricPoint& point : flags->points) {
    if (point.value.value_or(0) != 0) steps.push_back(point.step);
  }
  return steps;
}

std::vector<std::int64_t> steps_without_finite_loss(const ReportedRun& run) {
  std::vector<std::int64_t> steps;
  const store::MetricSeries* loss = series_of(run, "loss");
  if (loss == nullptr) return steps;
  for (const store::MetricPoint& point : loss->points) {
    if (!point.value) steps.push_back(point.step);
  }
  return steps;
}

void add_lane(plot::Timeline& chart, plot::Lane lane, double factor) {
  if (lane.slices.empty() && lane.moments.empty()) return;
  for (plot::Slice& slice : lane.slices) {
    slice.from *= factor;
    slice.to *= factor;
  }
  for (plot::Moment& moment : lane.moments) moment.at *= factor;
  chart.lanes.push_back(std::move(lane));
}

plot::Lane moments_lane(std::string name, const std::vector<std::int64_t>& steps,
                        const std::vector<StepEnd>& ends) {
  plot::Lane lane{.name = std::move(name)};
  const std::size_t every = steps.size() / kMostMoments + 1;
  for (std::size_t i = 0; i < steps.size(); i += every) {
    lane.moments.push_back({at_step(ends, steps[i]), fmt::format("step {}", steps[i])});
  }
  return lane;
}

plot::Lane validation_lane(const ReportedRun& run, const std::vector<StepEnd>& ends) {
  plot::Lane lane{.name = "validation"};
  const store::MetricSeries* took = series_of(run, "validation_seconds");
  if (took == nullptr) return lane;
  const std::size_t every = took->points.size() / kMostSlices + 1;
  for (std::size_t i = 0; i < took->points.size(); i += every) {
    const store::MetricPoint& point = took->points[i];
    const double from = at_step(ends, point.step);
    lane.slices.push_back(
        {from, from + point.value.value_or(0), fmt::format("after step {}", point.step)});
  }
  return lane;
}

Chart timeline_of(const ReportedRun& run, const std::vector<StepEnd>& ends) {
  const double all = ran_s(run);
  const TimeUnit unit = run_unit(all);
  const double factor = unit.per_second;
  plot::Timeline chart{.heading = {"Timeline"},
                       .time = {.title = fmt::format("{} since the start", unit.name),
                                .from_zero = true,
                                .format = figure},
                       .lanes = {}};
  add_lane(chart, {"run", {{0, all, std::string(store::name_of(run.record.status))}}}, factor);
  add_lane(chart, {"steps", slices_of(ends, all)}, factor);
  add_lane(chart, validation_lane(run, ends), factor);
  std::vector<std::int64_t> saved;
  for (const CheckpointLeft& one : checkpoints_of(run.record)) saved.push_back(one.step);
  add_lane(chart, moments_lane("checkpoints", saved, ends), factor);
  add_lane(chart, moments_lane("steps skipped", left_out_steps(run), ends), factor);
  if (run.record.status == store::RunStatus::kFailed ||
      run.record.status == store::RunStatus::kInterrupted) {
    add_lane(chart, {"end", {}, {{all, std::string(store::name_of(run.record.status))}}}, factor);
  }
  return drawn_chart("timeline", "Timeline", chart);
}

std::string listed(const std::vector<std::int64_t>& steps) {
  std::string text;
  for (std::size_t i = 0; i < std::min(steps.size(), kMostListed); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", steps[i]);
  }
  return text + (steps.size() > kMostListed ? ", …" : "");
}

}  // namespace

Section steps_section(const ReportedRun& run) {
  Section section{"Step times"};
  const store::MetricSeries* series = series_of(run, "seconds");
  const auto summary = summary_of(series);
  if (!summary) return section;
  const TimeUnit unit = step_unit(summary->median);
  plot::Distribution chart{
      .heading = {"Distribution of step times",
                  fmt::format("{} steps", base::grouped(summary->count))},
      .value = {.title = fmt::format("{} per step", unit.name), .format = figure},
      .values = {},
      .counted = "steps"};
  std::vector<std::int64_t> steps;
  for (const store::MetricPoint& point : series->points) {
    if (!point.value) continue;
    chart.values.push_back(*point.value * unit.per_second);
    steps.push_back(point.step);
  }
  chart.name_of = [&](std::size_t i) { return fmt::format("step {}", steps[i]); };
  section.blocks.emplace_back(drawn_chart("step-times", "Distribution of step times", chart,
                                          "Every dot is a step; its height has no meaning."));
  PageTable table{"Step times by process",
                  {"process", "steps", "least", "median", "mean", "p90", "p99", "most"}};
  for (const store::MetricSeries& one : run.metrics) {
    if (one.name != "seconds") continue;
    const auto s = summary_of(&one);
    if (!s) continue;
    const auto time = [](double value) { return Cell(amount(value, "s"), value); };
    table.rows.push_back({Cell(fmt::format("{}", one.source), static_cast<double>(one.source)),
                          Cell(base::grouped(s->count), static_cast<double>(s->count)),
                          time(s->least), time(s->median), time(s->mean), time(s->p90),
                          time(s->p99), time(s->most)});
  }
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section times_section(const ReportedRun& run) {
  Section section{"Where the time went"};
  const auto times = times_of(run);
  if (!times || times->all() <= 0) return section;
  const TimeUnit unit = run_unit(times->all());
  const double factor = unit.per_second;
  const std::vector<std::pair<const char*, double>> parts = {{"start-up", times->start_up},
                                                             {"steps", times->steps},
                                                             {"validation", times->validation},
                                                             {"between steps", times->between},
                                                             {"after the last step", times->after}};
  plot::StackedBars chart{.heading = {"Time of the whole run"},
                          .value = {.title = unit.name, .format = figure},
                          .parts = {},
                          .bars = {{"the run", {}}}};
  PageTable table{"Time of the run", {"part", "time", "share"}};
  for (const auto& [name, seconds] : parts) {
    if (seconds <= 0) continue;
    chart.parts.emplace_back(name);
    chart.bars[0].values.push_back(seconds * factor);
    const double share = 100 * seconds / times->all();
    table.rows.push_back({Cell(name), Cell(amount(seconds, "s"), seconds),
                          Cell(fmt::format("{:.1f} %", share), share)});
  }
  section.blocks.emplace_back(drawn_chart("time-breakdown", "Time of the whole run", chart));
  section.blocks.emplace_back(timeline_of(run, step_ends(run)));
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section events_section(const ReportedRun& run) {
  Section section{"Checkpoints and failures"};
  const std::vector<CheckpointLeft> saved = checkpoints_of(run.record);
  if (!saved.empty()) {
    const std::vector<StepEnd> ends = step_ends(run);
    PageTable table{"Checkpoints of the run", {"step", "files", "size", "after"}};
    for (std::size_t i = 0; i < std::min(saved.size(), kMostListed); ++i) {
      const CheckpointLeft& one = saved[i];
      const auto number = [](std::int64_t value) { return static_cast<double>(value); };
      std::vector<Cell> row = {Cell(base::grouped(one.step), number(one.step)),
                               Cell(base::grouped(one.files), number(one.files)),
                               Cell(base::to_text(base::Bytes(one.bytes)), number(one.bytes))};
      if (ends.empty()) {
        row.emplace_back("—");
      } else {
        row.emplace_back(amount(at_step(ends, one.step), "s"), at_step(ends, one.step));
      }
      table.rows.push_back(std::move(row));
    }
    table.more = static_cast<std::int64_t>(saved.size() - table.rows.size());
    section.blocks.emplace_back(std::move(table));
  }
  PageTable failures{"Failures, and what was not recorded", {"what", "how often", "where"}};
  const auto add = [&](const char* what, const std::vector<std::int64_t>& steps) {
    if (steps.empty()) return;
    failures.rows.push_back({Cell(what, std::nullopt, Rating::kBad),
                             Cell(base::grouped(static_cast<std::int64_t>(steps.size())),
                                  static_cast<double>(steps.size())),
                             Cell("steps " + listed(steps))});
  };
  add("steps skipped: gradients not finite", left_out_steps(run));
  add("loss not finite", steps_without_finite_loss(run));
  if (run.record.status == store::RunStatus::kFailed ||
      run.record.status == store::RunStatus::kInterrupted) {
    failures.rows.push_back(
        {Cell(std::string(store::name_of(run.record.status)), std::nullopt, Rating::kBad),
         Cell("1", 1.0), Cell("after " + amount(ran_s(run), "s"))});
  }
  for (const store::Missed& missed : run.record.missed) {
    failures.rows.push_back(
        {Cell(missed.what, std::nullopt, Rating::kOpen), Cell("1", 1.0), Cell(missed.text)});
  }
  if (!failures.rows.empty()) section.blocks.emplace_back(std::move(failures));
  return section;
}

}  // namespace assay::report
