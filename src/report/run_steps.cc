// Of a run: how long its steps took.
#include <fmt/format.h>

#include "base/units.h"
#include "plot/distribution.h"
#include "report/run_part.h"

namespace assay::report {
namespace {

// The unit in which a step of about this length reads well.
TimeUnit step_unit(double seconds) {
  if (seconds >= 1) return {"seconds", 1};
  if (seconds >= 1e-3) return {"milliseconds", 1e3};
  return {"microseconds", 1e6};
}

}  // namespace

Section steps_section(const ReportedRun& run) {
  Section section{"Step times"};
  const store::MetricSeries* series = series_of(run, "seconds");
  const auto summary = summary_of(series);
  if (!summary) return section;
  const TimeUnit unit = step_unit(summary->median);
  plot::Distribution chart{
      .heading = {"How long steps took", fmt::format("{} steps", base::grouped(summary->count))},
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
  section.blocks.emplace_back(Chart{"step-times", "How long steps took", plot::draw(chart),
                                    "Every dot is a step; its height means nothing."});
  Table table{"Step times by process",
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

}  // namespace assay::report
