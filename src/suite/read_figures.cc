#include "suite/read_figures.h"

#include <fmt/format.h>

#include "base/suggestion.h"
#include "base/text.h"
#include "spec/table_keys.h"
#include "suite/read_records.h"

namespace assay::suite {
namespace {

using compare::ComparedMetric;
using compare::MetricKind;
using spec::TableKeys;
using spec::Value;
using spec::wrong_value;

base::Result<ComparedMetric> place_of(const std::string& where, std::string_view text) {
  auto metric = compare::parse_metric(text);
  if (!metric) {
    if (metric.error().where.empty()) metric.error().where = where;
    return metric;
  }
  if (metric->kind == MetricKind::kCpu || metric->kind == MetricKind::kStored) {
    return base::fail(base::usage_error(where, fmt::format("'{}' is not in a case's output", text),
                                        "one of wall, regex:PATTERN, json:PATH"));
  }
  return metric;
}

// Resolves the cases that figures refer to.
class FigureReader {
 public:
  FigureReader(const Suite& suite, RecordBook& records) : suite_(suite), records_(records) {}

  base::Result<FigureTable> table(const Value& value) {
    if (value.get<Value::Table>() == nullptr) {
      return base::fail(wrong_value(value, "table", "a table"));
    }
    FigureTable table;
    TableKeys keys(value);
    ASSAY_TRY_VOID(keys.text("title", table.title));
    ASSAY_TRY_VOID(keys.text("unit", table.unit));
    ASSAY_TRY_VOID(keys.flag("signed", table.is_signed));
    ASSAY_TRY_VOID(keys.text("note", table.note));
    usual_ = {};
    ASSAY_TRY_VOID(read_places(keys, usual_));
    ASSAY_TRY(table.chart, chart_of(keys.take("chart")));
    const Value* figures = keys.take("figures");
    ASSAY_TRY_VOID(keys.no_others());
    const auto* list = figures == nullptr ? nullptr : figures->get<Value::Array>();
    if (table.title.empty() || list == nullptr || list->empty()) {
      return base::fail(base::usage_error(
          value.origin().text(),
          table.title.empty() ? "a table has a title" : "a table has a list of figures",
          "title = \"…\", figures = [ { what = \"…\", published = 1, measured = \"STEP\" } ]"));
    }
    for (const Value& figure : *list) {
      ASSAY_TRY(Figure read, figure_of(figure));
      table.figures.push_back(std::move(read));
    }
    return table;
  }

 private:
  // "step" in files of earlier versions.
  static base::Result<void> read_case_name(TableKeys& keys, std::string& name) {
    ASSAY_TRY_VOID(keys.text("step", name));
    return keys.text("case", name);
  }

  static base::Result<void> read_places(TableKeys& keys, FigureSource& source) {
    ASSAY_TRY_VOID(keys.parsed("value", source.value, place_of));
    ASSAY_TRY_VOID(keys.parsed("low", source.low, place_of));
    ASSAY_TRY_VOID(keys.parsed("high", source.high, place_of));
    ASSAY_TRY_VOID(read_per(keys.take("per"), source));
    ASSAY_TRY_VOID(keys.number("times", source.times));
    const Value* over = keys.take("over");
    if (over == nullptr) return {};
    const auto* whole = over->get<std::int64_t>();
    const auto* real = over->get<double>();
    if (whole == nullptr && real == nullptr) {
      return base::fail(wrong_value(*over, "over", "a number"));
    }
    source.over = whole != nullptr ? static_cast<double>(*whole) : *real;
    return {};
  }

  // A value in the same output, or { case, value } in that of another case.
  static base::Result<void> read_per(const Value* value, FigureSource& source) {
    if (value == nullptr) return {};
    source.per_case.clear();
    if (const auto* text = value->get<std::string>()) {
      ASSAY_TRY(source.per, place_of(value->origin().text() + ": per", *text));
      return {};
    }
    if (value->get<Value::Table>() == nullptr) {
      return base::fail(wrong_value(*value, "per", "a place, or { case = …, value = … }"));
    }
    TableKeys keys(*value);
    source.per.reset();
    ASSAY_TRY_VOID(read_case_name(keys, source.per_case));
    ASSAY_TRY_VOID(keys.parsed("value", source.per, place_of));
    ASSAY_TRY_VOID(keys.no_others());
    if (source.per_case.empty() || !source.per) {
      return base::fail(wrong_value(*value, "per", "a place, or { case = …, value = … }"));
    }
    return {};
  }

  static base::Result<std::optional<FigureChart>> chart_of(const Value* value) {
    if (value == nullptr) return std::nullopt;
    if (value->get<Value::Table>() == nullptr) {
      return base::fail(wrong_value(*value, "chart", "a table: { x = …, ideal = … }"));
    }
    FigureChart chart;
    TableKeys keys(*value);
    ASSAY_TRY_VOID(keys.text("x", chart.x));
    ASSAY_TRY_VOID(
        keys.parsed("ideal", chart.ideal,
                    [](const std::string& where, std::string_view text) -> base::Result<Ideal> {
                      if (text == "same") return Ideal::kSame;
                      if (text == "linear") return Ideal::kLinear;
                      return base::fail(base::usage_error(
                          where, fmt::format("'{}' is not an ideal line", text), "same or linear"));
                    }));
    ASSAY_TRY_VOID(keys.no_others());
    if (chart.x.empty()) {
      return base::fail(base::usage_error(value->origin().text(),
                                          "a chart needs a title for its axis", "x = \"GPUs\""));
    }
    return chart;
  }

  // The name of a case, with the table's values; or a table with its own.
  base::Result<std::optional<FigureSource>> source_of(const Value* value, const char* key,
                                                      bool is_measured) {
    if (value == nullptr) return std::nullopt;
    FigureSource source = usual_;
    if (const auto* name = value->get<std::string>()) {
      source.case_name = *name;
    } else if (value->get<Value::Table>() == nullptr) {
      return base::fail(wrong_value(*value, key, "a case's name, or { case = …, value = … }"));
    } else {
      TableKeys keys(*value);
      ASSAY_TRY_VOID(read_case_name(keys, source.case_name));
      if (value->find("value") != nullptr) source = {.case_name = source.case_name};
      ASSAY_TRY_VOID(read_places(keys, source));
      ASSAY_TRY_VOID(keys.text("missing", source.missing));
      ASSAY_TRY_VOID(keys.text("note", source.note));
      ASSAY_TRY_VOID(keys.no_others());
    }
    ASSAY_TRY_VOID(check_place(*value, source.case_name, source.value, is_measured));
    if (!source.per_case.empty()) {
      ASSAY_TRY_VOID(check_place(*value, source.per_case, *source.per, is_measured));
    }
    return source;
  }

  // Dividend and divisor must be of one kind, or the label would be wrong for one of them.
  base::Result<void> check_place(const Value& value, const std::string& name,
                                 const ComparedMetric& place, bool is_measured) const {
    const SuiteCase* suite_case = suite_.find_case(name);
    if (suite_case == nullptr) {
      std::vector<std::string> names;
      for (const SuiteCase& each : suite_.cases) names.push_back(each.name);
      return base::fail(base::usage_error(value.origin().text(),
                                          fmt::format("there is no case '{}'", name),
                                          base::suggestion(name, names)));
    }
    if (measures(suite_case->kind) != is_measured) {
      return base::fail(base::usage_error(
          value.origin().text(),
          fmt::format("case '{}' ({}) {}", suite_case->name, to_text(suite_case->kind),
                      is_measured ? "only computes, so it has no measured value"
                                  : "only measures, so it has no planned value"),
          is_measured ? "planned = …" : "measured = …"));
    }
    if (place.kind == MetricKind::kWall && suite_case->kind != CaseKind::kCommand) {
      return base::fail(no_place(value));
    }
    return {};
  }

  static base::Error no_place(const Value& value) {
    return base::usage_error(value.origin().text(), "does not say where the figure is",
                             "value = \"json:PATH\" or \"regex:PATTERN\" (of a command also "
                             "\"wall\"), here or for the whole table");
  }

  static base::Result<void> read_published(TableKeys& keys, Figure& figure) {
    const Value* published = keys.take("published");
    if (published == nullptr) return {};
    if (const auto* text = published->get<std::string>()) {
      figure.published_as = *text;
    } else if (const auto* whole = published->get<std::int64_t>()) {
      figure.published = static_cast<double>(*whole);
    } else if (const auto* real = published->get<double>()) {
      figure.published = *real;
    } else {
      return base::fail(wrong_value(*published, "published", "a number or a text"));
    }
    return {};
  }

  base::Result<Figure> figure_of(const Value& value) {
    if (value.get<Value::Table>() == nullptr) {
      return base::fail(wrong_value(value, "a figure", "a table"));
    }
    Figure figure;
    TableKeys keys(value);
    ASSAY_TRY_VOID(keys.text("what", figure.what));
    ASSAY_TRY_VOID(read_published(keys, figure));
    ASSAY_TRY(figure.measured, source_of(keys.take("measured"), "measured", true));
    ASSAY_TRY(figure.planned, source_of(keys.take("planned"), "planned", false));
    ASSAY_TRY(figure.recorded, records_.recorded_of(keys.take("recorded")));
    ASSAY_TRY_VOID(
        keys.parsed("goal", figure.goal, [](const std::string& where, std::string_view text) {
          auto goal = parse_goal(text);
          if (!goal) goal.error().where = where;
          return goal;
        }));
    ASSAY_TRY_VOID(keys.text("why", figure.why));
    ASSAY_TRY_VOID(keys.text("note", figure.note));
    ASSAY_TRY_VOID(keys.number("x", figure.x));
    ASSAY_TRY_VOID(keys.text("line", figure.line));
    ASSAY_TRY_VOID(keys.no_others());
    if (!figure.line.empty() && value.find("x") == nullptr) {
      return base::fail(base::usage_error(
          value.origin().text(), fmt::format("'{}' is on a line without an x", figure.what),
          "x = …, along the table's chart"));
    }
    if (figure.what.empty()) {
      return base::fail(
          base::usage_error(value.origin().text(), "a figure needs a name", "what = \"…\""));
    }
    const bool ours = figure.measured || figure.planned || figure.recorded;
    if (!ours && figure.why.empty()) {
      return base::fail(base::usage_error(
          value.origin().text(),
          fmt::format("'{}' is neither measured, planned nor recorded", figure.what),
          "give one of these; or why = \"…\" there is none"));
    }
    if (figure.measured && !figure.why.empty()) {
      return base::fail(base::usage_error(
          value.origin().text(), fmt::format("'{}' is measured, so it needs no why", figure.what),
          "the needs of a case say when it cannot be"));
    }
    if (figure.goal && figure.goal->kind == GoalKind::kWithin && !figure.published) {
      return base::fail(base::usage_error(
          value.origin().text(), "a goal with 'within' needs a published number", "use <= or >="));
    }
    return figure;
  }

  const Suite& suite_;
  RecordBook& records_;
  FigureSource usual_;  // the table's values
};

}  // namespace

base::Result<void> read_tables(const Value* tables, const Value* records, Suite& suite) {
  if (tables == nullptr) return {};
  const auto* list = tables->get<Value::Array>();
  if (list == nullptr) return base::fail(wrong_value(*tables, "table", "a list: [[table]]"));
  RecordBook book(records);
  FigureReader reader(suite, book);
  for (const Value& value : *list) {
    ASSAY_TRY(FigureTable table, reader.table(value));
    suite.tables.push_back(std::move(table));
  }
  return book.all_used();
}

}  // namespace assay::suite
