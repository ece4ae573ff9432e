#include "suite/outcome_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/figure.h"

namespace assay::suite {
namespace {

using base::Json;

constexpr double kWhole = 1000;  // shown without decimals from here on

std::string number_text(double value, bool is_signed) {
  if (!is_signed || !std::isfinite(value)) return base::figure(value);
  if (std::abs(value) >= kWhole)
    return value > 0 ? base::signed_figure(value) : base::figure(value);
  return fmt::format("{}{:.2f}", value > 0 ? "+" : "", value);
}

// With exactly the digits that were published.
std::string as_published(double value, bool is_signed) {
  return (is_signed && value > 0 ? "+" : "") + base::exact_figure(value);
}

std::optional<double> difference_of(const Figure& figure, const OurValue& ours) {
  if (ours.label != FigureLabel::kPlanned || !ours.value || !figure.published ||
      *figure.published == 0) {
    return std::nullopt;
  }
  return 100 * (*ours.value / *figure.published - 1);
}

Json ours_json(const OurValue& ours) {
  return {{"label", to_text(ours.label)},   {"value", base::or_null(ours.value)},
          {"low", base::or_null(ours.low)}, {"high", base::or_null(ours.high)},
          {"remark", ours.remark},          {"command", base::or_null(ours.command)}};
}

Json figures_json(const TableOutcome& table) {
  Json figures = Json::array();
  for (const FigureOutcome& found : table.figures) {
    Json ours = Json::array();
    for (const OurValue& each : found.ours) ours.push_back(ours_json(each));
    const Figure& figure = *found.figure;
    figures.push_back({{"table", table.table->title},
                       {"what", figure.what},
                       {"published", figure.published ? Json(*figure.published)
                                                      : base::or_null(figure.published_as)},
                       {"unit", table.table->unit},
                       {"ours", std::move(ours)},
                       {"note", figure.note}});
  }
  return figures;
}

// A text with its number, if it has one, which pages sort by.
Json cell_json(std::string text, const std::optional<double>& value) {
  if (!value) return text;
  return {{"text", std::move(text)}, {"value", *value}};
}

// The table as on the terminal, for report pages.
Json table_json(const SuiteOutcome& outcome, const TableOutcome& table) {
  Json rows = Json::array();
  for (const FigureOutcome& found : table.figures) {
    for (const OurValue& ours : found.ours) {
      rows.push_back(Json::array(
          {found.figure->what,
           cell_json(published_text(*table.table, *found.figure), found.figure->published),
           cell_json(value_text(*table.table, ours), ours.value), label_text(outcome, ours),
           cell_json(difference_text(*found.figure, ours), difference_of(*found.figure, ours)),
           remark_text(*found.figure, ours)}));
    }
  }
  const std::string unit = table.table->unit.empty() ? "" : ", " + table.table->unit;
  return {{"title", table.table->title + unit},
          {"columns", {"figure", "published", "ours", "how", "difference", "remark"}},
          {"rows", std::move(rows)},
          {"note", table.table->note},
          {"chart", chart_json(table)}};
}

Json goal_json(const GoalOutcome& goal) {
  const bool seen = goal.ours && (goal.ours->label == FigureLabel::kMeasured ||
                                  goal.ours->label == FigureLabel::kRecorded);
  return {{"what", goal.table->title + ": " + goal.figure->what},
          {"goal", goal_text(*goal.figure->goal)},
          // A computed number is never reported under this key.
          {"measured", seen ? Json(*goal.ours->value) : Json(nullptr)},
          {"ours", goal.ours ? Json(*goal.ours->value) : Json(nullptr)},
          {"label", goal.ours ? Json(to_text(goal.ours->label)) : Json(nullptr)},
          {"in_fit", goal.ours && goal.ours->in_fit},
          {"unit", goal.table->unit},
          {"verdict", to_text(goal.verdict)},
          {"note", goal.note}};
}

Json point_json(double x, double y, const std::optional<double>& low = {},
                const std::optional<double>& high = {}) {
  Json point = Json::array({x, y});
  if (low && high) {
    point.push_back(*low);
    point.push_back(*high);
  }
  return point;
}

// Lines in the order of their first point.
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

// From the first published figure on the chart.
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

std::string label_text(const SuiteOutcome& outcome, const OurValue& ours) {
  std::string text(to_text(ours.label));
  if (ours.label == FigureLabel::kMeasured && outcome.folder->quick()) text += " (quick)";
  return text;
}

std::string goal_text(const Goal& goal) {
  std::string text = goal.text;
  const std::size_t percent = text.find('%');
  const bool joined = percent != std::string::npos && percent > 0 && text[percent - 1] != ' ';
  if (joined) text.insert(percent, 1, ' ');
  return text;
}

std::string value_text(const FigureTable& table, const OurValue& ours) {
  if (!ours.value) return "—";
  // Recorded values keep the digits that were written down.
  const auto shown = [&](double value) {
    return ours.label == FigureLabel::kRecorded ? as_published(value, table.is_signed)
                                                : number_text(value, table.is_signed);
  };
  std::string text = shown(*ours.value);
  if (ours.low && ours.high) text += fmt::format(" [{}, {}]", shown(*ours.low), shown(*ours.high));
  return text;
}

std::string published_text(const FigureTable& table, const Figure& figure) {
  if (figure.published) return as_published(*figure.published, table.is_signed);
  return figure.published_as.empty() ? "—" : figure.published_as;
}

std::string remark_text(const Figure& figure, const OurValue& ours) {
  if (ours.remark.empty()) return figure.note;
  const bool both = ours.label == FigureLabel::kMeasured && !figure.note.empty();
  return both ? ours.remark + "; " + figure.note : ours.remark;
}

std::string difference_text(const Figure& figure, const OurValue& ours) {
  const auto difference = difference_of(figure, ours);
  return difference ? fmt::format("{:+.1f} %", *difference) : "";
}

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
    for (const OurValue& ours : each.ours) {
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

Json to_json(const SuiteOutcome& outcome) {
  const Suite& suite = outcome.folder->suite();
  const Json& facts = outcome.folder->facts();
  Json goals = Json::array();
  for (const GoalOutcome& goal : outcome.goals) goals.push_back(goal_json(goal));
  Json tables = Json::array();
  Json figures = Json::array();
  for (const TableOutcome& table : outcome.tables) {
    tables.push_back(table_json(outcome, table));
    for (Json& figure : figures_json(table)) figures.push_back(std::move(figure));
  }
  Json cases = Json::array();
  for (const CaseRun& run : outcome.cases) {
    const SuiteCase* suite_case = suite.find_case(run.name);
    cases.push_back({{"case", run.name},
                     {"kind", suite_case == nullptr ? "" : to_text(suite_case->kind)},
                     {"state", to_text(run.state)},
                     {"why", run.why},
                     {"wall_s", run.wall_s},
                     {"outputs", run.outputs}});
  }
  const auto fact = [&](const char* key) { return facts.value(key, Json(nullptr)); };
  return {{"suite", suite.name},
          {"title", suite.title},
          {"reproduces", suite.reproduces},
          {"url", suite.url},
          {"note", suite.note},
          {"quick", outcome.folder->quick()},
          {"complete", !outcome.interrupted()},
          {"failed", outcome.any_failed()},
          {"begun", fact("begun")},
          {"commit", fact("commit")},
          {"goals", std::move(goals)},
          {"tables", std::move(tables)},
          {"figures", std::move(figures)},
          {"cases", std::move(cases)},
          {"directory", outcome.folder->directory().string()},
          {"machine", fact("machine")}};
}

}  // namespace assay::suite
