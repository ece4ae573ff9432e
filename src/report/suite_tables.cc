#include "report/suite_tables.h"

#include <fmt/format.h>

#include "plot/lines.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

using base::Json;

constexpr std::size_t kMostSuiteLines = 12;
constexpr std::size_t kMostSuitePoints = 1000;  // of a line

// [x, y] or [x, y, low, high].
std::optional<plot::LinePoint> point_of(const Json& json) {
  if (!json.is_array() || (json.size() != 2 && json.size() != 4)) return std::nullopt;
  for (const Json& number : json) {
    if (!number.is_number()) return std::nullopt;
  }
  plot::LinePoint point{json[0].get<double>(), json[1].get<double>()};
  if (json.size() == 4)
    point.interval = plot::Interval{json[2].get<double>(), json[3].get<double>()};
  return point;
}

std::optional<plot::LineSeries> suite_line(const Json& json) {
  const bool sound = json.is_object() && json.contains("points") && json.at("points").is_array() &&
                     json.at("points").size() <= kMostSuitePoints;
  if (!sound) return std::nullopt;
  plot::LineSeries line{.name = suite_text(json, "name"), .points = {}};
  for (const Json& each : json.at("points")) {
    const auto point = point_of(each);
    if (!point) return std::nullopt;
    line.points.push_back(*point);
  }
  return line;
}

std::optional<plot::Reference> ideal_of(const Json& chart) {
  if (!chart.contains("ideal") || !chart.at("ideal").is_object()) return std::nullopt;
  const Json& ideal = chart.at("ideal");
  const auto number = [&](const char* key) {
    return ideal.contains(key) && ideal.at(key).is_number() ? ideal.at(key).get<double>() : 0.0;
  };
  return plot::Reference{
      .name = suite_text(ideal, "name"), .per_x = number("per_x"), .at_zero = number("at_zero")};
}

base::Result<Chart> chart_of_table(const Json& json, const std::string& title,
                                   const std::string& where) {
  const auto wrong = [&] {
    return base::fail(bad_suite(
        where, fmt::format("table '{}' has a chart that is not of at most {} lines of points",
                           title, kMostSuiteLines)));
  };
  const bool sound = json.is_object() && json.contains("lines") && json.at("lines").is_array() &&
                     json.at("lines").size() <= kMostSuiteLines;
  if (!sound) return wrong();
  const std::string heading = fmt::format("By {}", suite_text(json, "x"));
  plot::Lines lines{
      .heading = {heading},
      .x = {.title = suite_text(json, "x"), .scale = plot::Scale::kLog2, .format = figure},
      .y = {.title = suite_text(json, "y"), .from_zero = true, .format = figure},
      .series = {},
      .reference = ideal_of(json),
      .interval_style = plot::IntervalStyle::kErrorBars};
  bool intervals = false;
  for (const Json& each : json.at("lines")) {
    auto line = suite_line(each);
    if (!line) return wrong();
    for (const plot::LinePoint& point : line->points) {
      // Logarithmic for counts; linear if any value is below one.
      if (!(point.x >= 1)) lines.x.scale = plot::Scale::kLinear;
      intervals = intervals || point.interval.has_value();
    }
    lines.series.push_back(*std::move(line));
  }
  if (intervals) lines.interval_name = "interval";
  return drawn_chart("suite", heading, lines);
}

}  // namespace

base::Error bad_suite(const std::string& where, std::string what) {
  return base::usage_error(where, std::move(what), "see docs/report.md for the form of a suite");
}

Cell suite_cell(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_boolean()) return {value.get<bool>() ? "yes" : "no"};
  if (value.is_number()) {
    const double number = value.get<double>();
    return {figure(number), number};
  }
  const bool named = value.is_object() && value.contains("text") && value.at("text").is_string();
  if (!named) return {"—"};
  const bool number = value.contains("value") && value.at("value").is_number();
  return {value.at("text").get<std::string>(),
          number ? std::optional(value.at("value").get<double>()) : std::nullopt};
}

std::string suite_text(const Json& object, const char* key) {
  return object.contains(key) && !object.at(key).is_null() ? suite_cell(object.at(key)).text : "";
}

Json suite_cases(const Json& suite) {
  Json cases = Json::array();
  for (const auto& [list, name] : {std::pair("cases", "case"), std::pair("steps", "step")}) {
    if (!suite.contains(list) || !suite.at(list).is_array()) continue;
    for (const Json& each : suite.at(list)) {
      if (!each.is_object()) continue;
      cases.push_back(each);
      cases.back()["case"] = suite_text(each, name);
    }
  }
  return cases;
}

void leave_out_blank(PageTable& table) {
  for (std::size_t column = table.columns.size(); column-- > 1;) {
    bool blank = !table.rows.empty();
    for (const auto& row : table.rows) {
      blank = blank && !row[column].number && (row[column].text.empty() || row[column].text == "—");
    }
    if (!blank) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
}

base::Result<Section> suite_table(const Json& json, const std::string& where) {
  const bool sound = json.is_object() && json.contains("columns") &&
                     json.at("columns").is_array() && json.contains("rows") &&
                     json.at("rows").is_array();
  if (!sound) return base::fail(bad_suite(where, "has a table without columns and rows"));
  const std::string title = suite_text(json, "title");
  PageTable table{title.empty() ? "Table" : title, {}};
  for (const Json& column : json.at("columns")) table.columns.push_back(suite_cell(column).text);
  for (const Json& row : json.at("rows")) {
    if (!row.is_array() || row.size() != table.columns.size()) {
      return base::fail(bad_suite(
          where, fmt::format("table '{}' has a row that is not as long as its columns", title)));
    }
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const Json& value : row) cells.push_back(suite_cell(value));
  }
  leave_out_blank(table);
  Section section{table.caption};
  if (json.contains("chart") && !json.at("chart").is_null()) {
    ASSAY_TRY(Chart chart, chart_of_table(json.at("chart"), table.caption, where));
    section.blocks.emplace_back(std::move(chart));
  }
  section.blocks.emplace_back(std::move(table));
  if (const std::string note = suite_text(json, "note"); !note.empty()) {
    section.blocks.emplace_back(Note{note});
  }
  return section;
}

}  // namespace assay::report
