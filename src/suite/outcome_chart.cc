// The chart of a table: published figures and ours as lines, and what would be ideal.
#include <fmt/format.h>

#include <algorithm>

#include "suite/outcome.h"

namespace assay::suite {
namespace {

using base::Json;

Json point_json(double x, double y, const std::optional<double>& low = {},
                const std::optional<double>& high = {}) {
  Json point = Json::array({x, y});
  if (low && high) {
    point.push_back(*low);
    point.push_back(*high);
  }
  return point;
}

// Lines in the order in which they first get a point.
class ChartLines {
 public:
  void add(const std::string& name, Json point) {
    const auto same = [&](const Json& line) { return line.at("name") == name; };
    auto found = std::find_if(lines_.begin(), lines_.end(), same);
    if (found == lines_.end()) {
      lines_.push_back({{"name", name}, {"points", Json::array()}});
      found = std::prev(lines_.end());
    }
    (*found)["points"].push_back(std::move(point));
  }
  [[nodiscard]] const Json& lines() const { return lines_; }

 private:
  Json lines_ = Json::array();
};

// From the first published figure of the first line: what all that come after it are held against.
Json ideal_json(const FigureChart& chart, const TableOutcome& found) {
  for (const FigureOutcome& each : found.figures) {
    const Figure& figure = *each.figure;
    if (figure.line.empty() || !figure.published) continue;
    if (chart.ideal == Ideal::kSame) {
      return {{"name", "ideal"}, {"at_zero", *figure.published}, {"per_x", 0}};
    }
    if (chart.ideal == Ideal::kLinear && figure.x != 0) {
      return {{"name", "ideal"}, {"at_zero", 0}, {"per_x", *figure.published / figure.x}};
    }
  }
  return nullptr;
}

}  // namespace

Json chart_json(const TableOutcome& found) {
  const FigureTable& table = *found.table;
  if (!table.chart) return nullptr;
  ChartLines lines;
  for (const FigureOutcome& each : found.figures) {
    const Figure& figure = *each.figure;
    if (figure.line.empty()) continue;
    if (figure.published) {
      lines.add(figure.line + ", published", point_json(figure.x, *figure.published));
    }
    for (const Ours& ours : each.ours) {
      if (!ours.value) continue;
      lines.add(fmt::format("{}, {}", figure.line, to_text(ours.label)),
                point_json(figure.x, *ours.value, ours.low, ours.high));
    }
  }
  if (lines.lines().empty()) return nullptr;
  return {{"x", table.chart->x},
          {"y", table.unit},
          {"lines", lines.lines()},
          {"ideal", ideal_json(*table.chart, found)}};
}

}  // namespace assay::suite
