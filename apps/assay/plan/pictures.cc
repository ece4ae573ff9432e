#include "assay/plan/pictures.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "plan/calibrate/fit.h"
#include "plan/search/layouts.h"
#include "plot/lines.h"
#include "plot/scatter.h"
#include "plot/stacked_bars.h"

namespace assay::cli {
namespace {

constexpr double kSecondsPerHour = 3600;

base::Result<void> write_picture(const Session& session, const std::filesystem::path& folder,
                                 const char* file, const std::string& svg) {
  ASSAY_TRY_VOID(base::write_output(folder / file, svg));
  session.print(fmt::format("\nwrote {}\n", base::printable((folder / file).string())));
  return {};
}

// One bar per number of devices, so that what grows with it is seen.
plot::StackedBars breakdown(const JobPlan& plan) {
  const plan::StepTime& job = plan.plan.step->time;
  const bool in_seconds = job.total >= base::Seconds(1);
  plot::StackedBars chart{
      .heading = {"Where the time of a step goes", plan.loaded.name + ", predicted"},
      .value = {.title = in_seconds ? "seconds per step" : "milliseconds per step"}};
  std::vector<plan::StepPart> shown;
  std::vector<plan::ScalePoint> points;
  for (const plan::ScalePoint& point : plan.scaling) {
    if (point.prediction.fits || point.is_job) points.push_back(point);
  }
  for (const plan::StepPart& part : plan::step_parts()) {
    double largest = job.*part.time / job.total;
    for (const plan::ScalePoint& point : points) {
      const plan::StepTime& step = point.prediction.step;
      largest = std::max(largest, step.*part.time / step.total);
    }
    if (largest < 1e-3) continue;  // too thin to see
    shown.push_back(part);
    chart.parts.emplace_back(part.name);
  }
  const auto add = [&](const std::string& label, const plan::StepTime& step) {
    std::vector<double> values;
    for (const plan::StepPart& part : shown) {
      values.push_back((in_seconds ? 1 : 1e3) * (step.*part.time).count());
    }
    chart.bars.push_back({label, std::move(values)});
  };
  if (points.empty()) add("this job", job);
  for (const plan::ScalePoint& point : points) {
    add(fmt::format("{} devices", base::grouped(point.devices)), point.prediction.step);
  }
  return chart;
}

plot::Lines scaling(const JobPlan& plan) {
  plot::LineSeries series{.name = "predicted", .points = {}};
  const plan::ErrorInterval& interval = plan.plan.step->interval;
  double per_device = 0;
  for (const plan::ScalePoint& point : plan.scaling) {
    if (!point.prediction.fits || !point.own_recompute) continue;
    const double rate = point.prediction.tokens_per_second;
    const auto devices = static_cast<double>(point.devices);
    if (per_device == 0) per_device = rate / devices;
    series.points.push_back(
        {devices, rate, plot::Interval{rate / interval.high, rate / interval.low}});
  }
  return {.heading = {"Tokens per second", plan.loaded.name + ", weak scaling"},
          .x = {.title = "devices", .scale = plot::Scale::kLog2},
          .y = {.title = "tokens per second", .scale = plot::Scale::kLog10},
          .series = {std::move(series)},
          .reference = plot::Reference{.name = "ideal", .per_x = per_device},
          .interval_name = "80 % interval"};
}

plot::Scatter pareto(const std::string& name, const plan::Found& found, bool is_priced) {
  plot::Scatter chart{.heading = {is_priced ? "Time versus cost" : "Time versus GPU-hours",
                                  name + ", medians with failures"},
                      .x = {.title = is_priced ? "cost of the run, $" : "GPU-hours of the run",
                            .scale = plot::Scale::kLog10},
                      .y = {.title = "hours", .scale = plot::Scale::kLog10},
                      .groups = {"on demand", "spot"},
                      .points = {},
                      .front_name = "Pareto front"};
  for (const plan::Candidate& one : found.candidates) {
    if (!one.misses.empty()) continue;
    chart.points.push_back(
        {.x = one.cost(),
         .y = one.time_p50.count() / kSecondsPerHour,
         .label = fmt::format(
             "{} x {}, {}{}", base::grouped(one.devices), one.machines, one.offer.provider,
             found.recommended && &one == &found.candidates[*found.recommended] ? ": recommended"
                                                                                : ""),
         .group = one.policy == plan::SpotPolicy::kOnDemand ? 0U : 1U});
  }
  return chart;
}

plot::Scatter against_measured(const std::vector<plan::Row>& rows,
                               const std::vector<plan::RowPrediction>& predictions) {
  plot::Scatter chart{.heading = {"Predicted versus measured", "seconds per step"},
                      .x = {.title = "measured, s", .scale = plot::Scale::kLog10},
                      .y = {.title = "predicted, s", .scale = plot::Scale::kLog10},
                      .groups = {"dense", "mixtures"},
                      .points = {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!plan::has_time(rows[i]) || !predictions[i].step_s) continue;
    const bool moe = predictions[i].work->shape.is_moe();
    chart.points.push_back(
        {.x = *rows[i].step_s, .y = *predictions[i].step_s, .group = moe ? 1U : 0U});
  }
  return chart;
}

}  // namespace

base::Result<void> draw_rows(const Session& session, const std::vector<plan::Row>& rows,
                             const std::vector<plan::RowPrediction>& predictions,
                             const std::string& folder) {
  return write_picture(session, folder, "measured.svg",
                       plot::draw(against_measured(rows, predictions)).svg());
}

base::Result<void> draw_plan(const Session& session, const JobPlan& plan,
                             const std::string& folder) {
  if (!plan.plan.step) {
    session.print("\nno chart: the job does not fit\n");
    return {};
  }
  ASSAY_TRY_VOID(
      write_picture(session, folder, "breakdown.svg", plot::draw(breakdown(plan)).svg()));
  return write_picture(session, folder, "scaling.svg", plot::draw(scaling(plan)).svg());
}

base::Result<void> draw_search(const Session& session, const std::string& name,
                               const plan::Found& found, bool is_priced,
                               const std::string& folder) {
  return write_picture(session, folder, "pareto.svg",
                       plot::draw(pareto(name, found, is_priced)).svg());
}

}  // namespace assay::cli
