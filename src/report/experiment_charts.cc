#include "report/experiment_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"
#include "compare/pairs.h"
#include "plot/downsample.h"
#include "plot/intervals.h"
#include "plot/scatter.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

using compare::Comparison;
using compare::Estimate;
using compare::Experiment;

constexpr std::size_t kMostPoints = 1500;

std::string percent_of(double value) {
  return std::abs(value) < 1000 ? fmt::format("{:+.3g} %", value) : signed_figure(value) + " %";
}

std::optional<plot::Interval> drawn(const Estimate& estimate) {
  if (estimate.method == compare::Method::kNone) return std::nullopt;
  const compare::ConfidenceInterval p = compare::percent(estimate.interval);
  return plot::Interval{p.low, p.high};
}

// ln(arm/baseline) of one block; where runs have steps, of those that both have.
std::optional<double> difference_of(const compare::Block& block, std::size_t arm) {
  const compare::ArmRun& a = *block.runs.front();
  const compare::ArmRun& b = *block.runs[arm];
  if (a.steps.empty() && b.steps.empty()) return std::log(b.value / a.value);
  const auto match = compare::match_steps(a.steps, b.steps);
  return match ? std::optional(match->difference) : std::nullopt;
}

enum Kind : std::size_t { kCounted, kMarked, kWarmUp };

std::size_t kind_of(const compare::Block& block) {
  if (block.warm_up) return kWarmUp;
  return block.marks.empty() ? kCounted : kMarked;
}

// Kinds of pairs that do not occur are not in the legend.
void name_used_kinds(plot::Scatter& chart) {
  constexpr std::array<const char*, 3> kNames = {"pair", "pair, host disturbed",
                                                 "warm-up, not counted"};
  chart.groups.clear();
  std::array<std::size_t, kNames.size()> group_of{};
  for (std::size_t kind = 0; kind < kNames.size(); ++kind) {
    const bool used =
        kind == kCounted || std::any_of(chart.points.begin(), chart.points.end(),
                                        [&](const auto& point) { return point.group == kind; });
    group_of[kind] = chart.groups.size();
    if (used) chart.groups.emplace_back(kNames[kind]);
  }
  for (plot::ScatterPoint& point : chart.points) point.group = group_of[point.group];
}

// No effect; and the margin, if there is one.
std::vector<plot::Level> reference_lines(const Experiment& e) {
  std::vector<plot::Level> lines = {{"no effect", 0}};
  const double margin = e.judgement.margin_pct;
  if (e.judgement.judged) {
    lines.push_back({"margin", e.judgement.more_is_better ? -margin : margin});
  }
  return lines;
}

std::string metric_title(const Experiment& e) {
  if (e.steps) return fmt::format("median step, in units of {:g} s", e.step_seconds);
  return e.metric.text() + (is_time(e) ? " time, seconds" : "");
}

// Points in the order of blocks, fewer where there are very many.
void downsample_points(std::vector<plot::ScatterPoint>& points) {
  std::vector<double> heights;
  for (const plot::ScatterPoint& point : points) heights.push_back(point.y);
  std::vector<plot::ScatterPoint> kept;
  for (const std::size_t i : plot::downsample(heights, kMostPoints)) kept.push_back(points[i]);
  points = std::move(kept);
}

std::string downsampled_note(std::size_t all) {
  if (all <= kMostPoints) return {};
  return fmt::format("Of {} points, the smallest and the largest of every interval are drawn.",
                     base::grouped(static_cast<std::int64_t>(all)));
}

}  // namespace

bool is_time(const Experiment& e) {
  using compare::MetricKind;
  return e.steps || e.metric.kind == MetricKind::kWall || e.metric.kind == MetricKind::kCpu;
}

std::string metric_text(const Experiment& e, double value) {
  if (e.steps) return base::to_text(base::Seconds(value * e.step_seconds));
  return is_time(e) ? base::to_text(base::Seconds(value)) : figure(value);
}

Chart pairs_chart(const ExperimentRecord& record, const Comparison& comparison) {
  const Experiment& e = record.measured.experiment;
  const std::string title =
      fmt::format("Every pair: {} against {}", e.name_of(comparison.arm), e.arms.front().name);
  plot::Scatter chart{.heading = {title, "in the order in which they ran"},
                      .x = {.title = "block", .whole = true},
                      .y = {.title = fmt::format("change from {} to {}, %", e.arms.front().name,
                                                 e.name_of(comparison.arm)),
                            .format = percent_of},
                      .groups = {"pair"},
                      .points = {}};
  for (const compare::Block& block : record.findings.blocks.complete) {
    const auto difference = difference_of(block, comparison.arm);
    if (!difference) continue;
    chart.points.push_back({.x = static_cast<double>(block.number + 1),
                            .y = compare::percent(*difference),
                            .group = kind_of(block)});
  }
  name_used_kinds(chart);
  const std::size_t all = chart.points.size();
  downsample_points(chart.points);
  chart.levels.lines = reference_lines(e);
  if (const auto interval = drawn(comparison.effect.estimate)) {
    chart.levels.bands.push_back({"interval of the estimate", *interval});
  }
  if (record.findings.noise_floor_pct) {
    const double floor = *record.findings.noise_floor_pct;
    chart.levels.bands.push_back({"noise floor", {-floor, floor}});
  }
  return drawn_chart(fmt::format("pairs-{}", comparison.arm), title, chart, downsampled_note(all));
}

Chart estimates_chart(const ExperimentRecord& record, const Comparison& comparison) {
  const Experiment& e = record.measured.experiment;
  const compare::Effect& effect = comparison.effect;
  const std::string title =
      fmt::format("Estimates: {} against {}", e.name_of(comparison.arm), e.arms.front().name);
  plot::Intervals chart{
      .heading = {title, fmt::format("{:.4g} % intervals", 100 * (1 - effect.alpha))},
      .value = {.title = fmt::format("% of {}", e.arms.front().name), .format = percent_of},
      .rows = {}};
  const auto add = [&](const std::string& name, double centre,
                       const std::optional<plot::Interval>& interval, std::size_t group) {
    chart.rows.push_back({name, compare::percent(centre), interval, group});
  };
  const auto in_percent = [](const std::optional<compare::ConfidenceInterval>& interval) {
    if (!interval) return std::optional<plot::Interval>();
    const compare::ConfidenceInterval p = compare::percent(*interval);
    return std::optional(plot::Interval{p.low, p.high});
  };
  const bool ranked = effect.estimate.method == compare::Method::kSignedRank;
  add(ranked ? "Hodges-Lehmann, signed rank" : "mean, Student's t", effect.estimate.centre,
      drawn(effect.estimate), 0);
  if (effect.student && ranked) {
    add("mean, Student's t", effect.mean, in_percent(effect.student), 1);
  }
  if (effect.bootstrap) add("mean, bootstrap (BCa)", effect.mean, in_percent(effect.bootstrap), 2);
  if (comparison.whole_runs) {
    const Estimate& whole = comparison.whole_runs->estimate;
    add("whole runs, wall time", whole.centre, drawn(whole), 3);
  }
  if (record.findings.second_baseline) {
    const Estimate& same = record.findings.second_baseline->effect.estimate;
    add(fmt::format("noise: {0}' against {0}", e.arms.front().name), same.centre, drawn(same), 6);
  }
  chart.levels.lines = reference_lines(e);
  return drawn_chart(fmt::format("estimates-{}", comparison.arm), title, chart);
}

Chart compared_chart(const char* name, const std::string& title, const Experiment& e,
                     const std::vector<ComparedValue>& values) {
  plot::Intervals chart{
      .heading = {title, fmt::format("{:.4g} % intervals", 100 * (1 - e.alpha()))},
      .value = {.title = fmt::format("% of {}", e.arms.front().name), .format = percent_of},
      .rows = {}};
  for (const ComparedValue& value : values) {
    const Estimate& estimate = value.comparison->effect.estimate;
    chart.rows.push_back({value.name, compare::percent(estimate.centre), drawn(estimate), 0});
  }
  chart.levels.lines = reference_lines(e);
  return drawn_chart(name, title, chart);
}

Chart values_chart(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  std::vector<ComparedValue> values;
  for (const Comparison& comparison : record.findings.comparisons) {
    values.push_back({e.name_of(comparison.arm), &comparison});
  }
  return compared_chart("values", fmt::format("By value, against {}", e.arms.front().name), e,
                        values);
}

Chart runs_chart(const ExperimentRecord& record) {
  const Experiment& e = record.measured.experiment;
  const char* title = "Every run, as it was measured";
  plot::Scatter chart{.heading = {title, "in the order in which they ran"},
                      .x = {.title = "run", .whole = true},
                      .y = {.title = metric_title(e),
                            .format = [&](double value) { return metric_text(e, value); }},
                      .points = {}};
  for (std::size_t arm = 0; arm < e.runs_per_block(); ++arm) chart.groups.push_back(e.name_of(arm));
  for (const compare::ArmRun& run : record.measured.runs) {
    chart.points.push_back({.x = static_cast<double>(run.run), .y = run.value, .group = run.arm});
  }
  const std::size_t all = chart.points.size();
  downsample_points(chart.points);
  return drawn_chart("runs", title, chart, downsampled_note(all));
}

}  // namespace assay::report
