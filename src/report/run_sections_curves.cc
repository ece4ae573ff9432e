#include "report/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "plot/downsample.h"
#include "plot/lines.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostDrawn = 400;      // points of a line
constexpr std::size_t kMostSources = 6;      // lines of one chart
constexpr std::size_t kMostOtherCurves = 6;  // of quantities unknown to Assay

// Maps steps to the horizontal axis: to times if the run recorded them, else to step numbers.
class StepAxis {
 public:
  explicit StepAxis(const ReportedRun& run)
      : ends_(step_ends(run)), unit_(run_unit(ends_.empty() ? 0 : ends_.back().at_s)) {}

  [[nodiscard]] plot::Axis axis() const {
    return {.title = ends_.empty() ? "step" : fmt::format("{} since the start", unit_.name),
            .whole = ends_.empty(),
            .format = figure};
  }
  [[nodiscard]] double at(std::int64_t step) const {
    if (ends_.empty()) return static_cast<double>(step);
    const auto end = std::lower_bound(ends_.begin(), ends_.end(), step,
                                      [](const StepEnd& e, std::int64_t s) { return e.step < s; });
    return unit_.per_second * (end == ends_.end() ? ends_.back() : *end).at_s;
  }

 private:
  std::vector<StepEnd> ends_;
  TimeUnit unit_;
};

plot::LineSeries line_of(const store::MetricSeries& series, std::string name, double factor,
                         const auto& place_of,
                         double most = std::numeric_limits<double>::infinity()) {
  std::vector<plot::LinePoint> points;
  points.reserve(series.points.size());
  for (const store::MetricPoint& point : series.points) {
    const bool drawn = point.value && *point.value <= most;
    points.push_back({place_of(point.step), drawn ? *point.value * factor : std::nan("")});
  }
  return {.name = std::move(name), .points = plot::downsample_to_band(points, kMostDrawn)};
}

// The name of the band around a line; empty if no series is long enough to have one.
std::string band_name(const std::vector<const store::MetricSeries*>& drawn) {
  const bool banded = std::any_of(drawn.begin(), drawn.end(), [](const auto* series) {
    return series->points.size() > kMostDrawn;
  });
  return banded ? "minimum to maximum" : "";
}

struct Curve {
  const char* series;
  const char* name;  // of its line
};

struct CurveChart {
  const char* name;
  const char* title;
  const char* unit;
  double factor;
  bool from_zero;
  bool by_step;
  bool cut_outliers;  // whether outliers are named under the chart instead of drawn
  std::vector<Curve> curves;
};

const std::vector<CurveChart>& known_charts() {
  static const std::vector<CurveChart> charts = {
      {"loss",
       "Loss",
       "loss",
       1,
       false,
       true,
       false,
       {{"loss", "training"}, {"validation_loss", "validation"}}},
      {"throughput",
       "Throughput",
       "tokens per second",
       1,
       true,
       false,
       true,
       {{"tokens_per_s", "measured"}}},
      {"mfu",
       "Utilisation",
       "% of the device's peak",
       100,
       true,
       false,
       true,
       {{"mfu", "MFU"}, {"mfu_6n", "6N"}}},
      {"memory",
       "Memory",
       "GiB",
       1.0 / (1 << 30),
       true,
       false,
       false,
       {{"memory_bytes", "training"}, {"host_bytes", "process"}}},
      {"power", "Power", "watts", 1, true, false, false, {{"watts", "measured"}}},
      {"clock", "Clock", "MHz", 1, true, false, false, {{"sm_mhz", "GPU"}}},
      {"norm",
       "Gradient norm",
       "norm before clipping",
       1,
       true,
       true,
       false,
       {{"gradient_norm", "norm"}}}};
  return charts;
}

// Other programs measure losses in other units, or do not say in which.
std::string loss_title(const ReportedRun& run,
                       const std::vector<const store::MetricSeries*>& drawn) {
  std::set<std::string> units;
  for (const store::MetricSeries* series : drawn) units.insert(series->unit);
  const bool own_trainer =
      !run.record.command.empty() &&
      std::filesystem::path(run.record.command.front()).filename() == "assay-train";
  if (own_trainer && units == std::set<std::string>{""}) return "loss, nats per token";
  units.erase("");
  return units.empty() ? "loss" : fmt::format("loss, {}", fmt::join(units, " and "));
}

std::optional<Chart> chart_of(const ReportedRun& run, const CurveChart& known,
                              const StepAxis& axis) {
  double factor = known.factor;
  std::string unit = known.unit;
  const auto memory = summary_of(series_of(run, known.curves.front().series));
  if (unit == "GiB" && memory && memory->most < (1 << 30)) {
    factor *= 1024;
    unit = "MiB";
  }
  plot::Lines lines{.heading = {known.title},
                    .x = known.by_step
                             ? plot::Axis{.title = "step", .whole = true, .format = figure}
                             : axis.axis(),
                    .y = {.title = unit, .from_zero = known.from_zero, .format = figure},
                    .series = {}};
  std::vector<const store::MetricSeries*> drawn;
  std::string note;
  for (const Curve& curve : known.curves) {
    std::vector<const store::MetricSeries*> sources;
    for (const store::MetricSeries& series : run.metrics) {
      if (series.name == curve.series) sources.push_back(&series);
    }
    for (std::size_t i = 0; i < std::min(sources.size(), kMostSources); ++i) {
      std::string name = curve.name;
      if (sources.size() > 1) name += fmt::format(", process {}", sources[i]->source);
      const auto place = [&](std::int64_t step) {
        return known.by_step ? static_cast<double>(step) : axis.at(step);
      };
      const Outliers outliers = known.cut_outliers ? outliers_of(*sources[i]) : Outliers{};
      if (outliers.count > 0) {
        note += fmt::format(
            "{}{}: {} far above all others {} not drawn, up to {} at step {}.",
            note.empty() ? "" : " ", name,
            outliers.count == 1 ? "one value" : base::grouped(outliers.count) + " values",
            outliers.count == 1 ? "is" : "are", amount(outliers.largest, sources[i]->unit),
            base::grouped(outliers.step));
      }
      lines.series.push_back(line_of(*sources[i], std::move(name), factor, place, outliers.above));
      drawn.push_back(sources[i]);
    }
  }
  if (drawn.empty()) return std::nullopt;
  if (std::string_view(known.name) == "loss") lines.y.title = loss_title(run, drawn);
  lines.interval_name = band_name(drawn);
  // 0 is no prediction: it may be one of memory only.
  if (run.predicted && run.predicted->tokens_per_s > 0 &&
      std::string_view(known.name) == "throughput") {
    lines.reference = plot::Reference{.name = "predicted", .at_zero = run.predicted->tokens_per_s};
  }
  return drawn_chart(known.name, known.title, lines, std::move(note));
}

// Quantities that only other programs measure.
void add_other_curves(const ReportedRun& run, const StepAxis& axis, Section& section) {
  std::set<std::string> known = {"unix_s",
                                 "tokens",
                                 "seconds",
                                 "validation_tokens",
                                 "validation_seconds",
                                 "joules",
                                 "joules_per_token",
                                 "learning_rate",
                                 "z_loss"};
  for (const CurveChart& chart : known_charts()) {
    for (const Curve& curve : chart.curves) known.insert(curve.series);
  }
  std::size_t drawn = 0;
  for (const store::MetricSeries& series : run.metrics) {
    if (series.unit == store::kFlag || series.points.size() < 2) continue;
    if (!known.insert(series.name).second || drawn == kMostOtherCurves) continue;
    ++drawn;
    const std::string title = base::printable(series.name);
    const std::string unit = series.unit.empty() ? series.name : series.unit;
    const auto place = [&](std::int64_t step) { return axis.at(step); };
    const plot::Lines lines{.heading = {title},
                            .x = axis.axis(),
                            .y = {.title = unit, .format = figure},
                            .series = {line_of(series, title, 1, place)},
                            .interval_name = band_name({&series})};
    section.blocks.emplace_back(drawn_chart(title, title, lines));
  }
}

}  // namespace

Section curves_section(const ReportedRun& run) {
  Section section{"Over time"};
  const StepAxis axis(run);
  for (const CurveChart& known : known_charts()) {
    if (auto chart = chart_of(run, known, axis)) section.blocks.emplace_back(*std::move(chart));
  }
  add_other_curves(run, axis, section);
  std::size_t most = 0;
  for (const store::MetricSeries& series : run.metrics) most = std::max(most, series.points.size());
  if (most > kMostDrawn && !section.blocks.empty()) {
    section.blocks.insert(
        section.blocks.begin(),
        Note{fmt::format("Lines of up to {} points are drawn as the mean of each of {} intervals, "
                         "with a band from the "
                         "minimum to the maximum.",
                         base::grouped(static_cast<std::int64_t>(most)), kMostDrawn)});
  }
  return section;
}

}  // namespace assay::report
