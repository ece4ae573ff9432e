#include "report/suite_part.h"

#include <fmt/format.h>

namespace assay::report {
namespace {

using base::Json;

base::Error bad_suite(const std::string& where, std::string what) {
  return base::usage_error(where, std::move(what), "see docs/report.md for the form of a suite");
}

Cell cell_of(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_boolean()) return {value.get<bool>() ? "yes" : "no"};
  if (value.is_number()) {
    const double number = value.get<double>();
    return {fmt::format("{:.6g}", number), number};
  }
  return {"—"};
}

std::string text_of(const Json& object, const char* key) {
  return object.contains(key) && !object.at(key).is_null() ? cell_of(object.at(key)).text : "";
}

bool is_plain(const Json& value) {
  return value.is_string() || value.is_number() || value.is_boolean() || value.is_null();
}

// Verdicts are words of the suite's own; these are known.
Outcome outcome_of(std::string word) {
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (word == "pass" || word == "reached" || word == "yes") return Outcome::kGood;
  if (word == "fail" || word == "missed" || word == "no") return Outcome::kBad;
  return Outcome::kOpen;
}

base::Result<Table> goals_of(const Json& goals, const std::string& where, Verdict& verdict) {
  Table table{"What was to be reached", {"what", "goal", "measured", "unit", "verdict", "note"}};
  std::size_t reached = 0;
  bool missed = false;
  for (const Json& goal : goals) {
    if (!goal.is_object() || !goal.contains("what")) {
      return base::fail(bad_suite(where, "has a goal that is no object with 'what'"));
    }
    for (const auto& [key, value] : goal.items()) {
      if (!is_plain(value)) {
        return base::fail(bad_suite(where, fmt::format("goals: '{}' is a list or object", key)));
      }
    }
    const std::string word = text_of(goal, "verdict");
    const Outcome outcome = outcome_of(word);
    reached += outcome == Outcome::kGood ? 1 : 0;
    missed = missed || outcome == Outcome::kBad;
    const Cell measured = goal.contains("measured") ? cell_of(goal.at("measured")) : Cell("—");
    table.rows.push_back({Cell(text_of(goal, "what")),
                          goal.contains("goal") ? cell_of(goal.at("goal")) : Cell("—"), measured,
                          Cell(text_of(goal, "unit")),
                          Cell(word.empty() ? "not judged" : word, std::nullopt, outcome),
                          Cell(text_of(goal, "note"))});
  }
  const std::size_t all = table.rows.size();
  verdict.outcome = missed ? Outcome::kBad : reached == all ? Outcome::kGood : Outcome::kOpen;
  verdict.word = missed ? "missed" : reached == all ? "reached" : "open";
  verdict.text = fmt::format("{} of {} goals reached", reached, all);
  return table;
}

base::Result<Section> table_section(const Json& json, const std::string& where) {
  const bool sound = json.is_object() && json.contains("columns") &&
                     json.at("columns").is_array() && json.contains("rows") &&
                     json.at("rows").is_array();
  if (!sound) return base::fail(bad_suite(where, "has a table without columns and rows"));
  const std::string title = text_of(json, "title");
  Table table{title.empty() ? "Table" : title, {}};
  for (const Json& column : json.at("columns")) table.columns.push_back(cell_of(column).text);
  for (const Json& row : json.at("rows")) {
    if (!row.is_array() || row.size() != table.columns.size()) {
      return base::fail(bad_suite(
          where, fmt::format("table '{}' has a row that is not as long as its columns", title)));
    }
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const Json& value : row) cells.push_back(cell_of(value));
  }
  Section section{table.caption, {std::move(table)}};
  if (const std::string note = text_of(json, "note"); !note.empty()) {
    section.blocks.emplace_back(Note{note});
  }
  return section;
}

}  // namespace

base::Result<Part> suite_part(const Json& suite, const std::string& where) {
  if (!suite.is_object() || !suite.contains("suite") || !suite.at("suite").is_string()) {
    return base::fail(bad_suite(where, "is no result of a suite: it names no 'suite'"));
  }
  Part part{.kind = "suite", .title = suite.at("suite"), .subtitle = where};
  for (const char* key : {"goals", "tables"}) {
    if (suite.contains(key) && !suite.at(key).is_array()) {
      return base::fail(bad_suite(where, fmt::format("'{}' is no list", key)));
    }
  }
  if (suite.contains("goals") && !suite.at("goals").empty()) {
    ASSAY_TRY(Table goals, goals_of(suite.at("goals"), where, part.verdict));
    add_section(part, {"Goals", {std::move(goals)}});
  }
  if (const std::string note = text_of(suite, "note"); !note.empty()) {
    add_section(part, {"Notes", {Note{note}}});
  }
  if (suite.contains("tables")) {
    for (const Json& table : suite.at("tables")) {
      ASSAY_TRY(Section section, table_section(table, where));
      add_section(part, std::move(section));
    }
  }
  part.data = suite;
  return part;
}

}  // namespace assay::report
