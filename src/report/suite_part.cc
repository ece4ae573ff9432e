#include "report/suite_part.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/units.h"
#include "report/machine_tables.h"
#include "report/numbers.h"
#include "report/suite_tables.h"

namespace assay::report {
namespace {

using base::Json;

// Suites choose their own words for verdicts; these are known.
Rating rating_of(std::string word) {
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (word == "pass" || word == "reached" || word == "yes") return Rating::kGood;
  if (word == "fail" || word == "missed" || word == "no") return Rating::kBad;
  return Rating::kOpen;
}

// How the value that a goal was judged by was obtained: measured, recorded or planned.
std::string source_of_value(const Json& goal) {
  if (std::string label = suite_text(goal, "label"); !label.empty()) return label;
  return goal.contains("measured") && !goal.at("measured").is_null() ? "measured" : "";
}

// Whether the value was computed by constants that were fitted to the very row it is judged by.
bool in_fit(const Json& goal) {
  return goal.contains("in_fit") && goal.at("in_fit") == true;
}

Cell ours_of(const Json& goal) {
  for (const char* key : {"ours", "measured"}) {
    if (!goal.contains(key) || goal.at(key).is_null()) continue;
    Cell cell = suite_cell(goal.at(key));
    if (cell.number) cell.text = figure(*cell.number);
    const std::string unit = suite_text(goal, "unit");
    if (unit == "$" && cell.number) {
      cell.text = dollars_text(*cell.number);
    } else if (!unit.empty()) {
      cell.text += " " + unit;
    }
    return cell;
  }
  return Cell("—");
}

struct GoalCount {
  std::size_t all = 0;
  std::size_t good = 0;
  std::size_t seen = 0;    // of those: measured or recorded
  std::size_t in_fit = 0;  // of those: computed by constants that were fitted to them
  bool missed = false;
  bool labelled = false;
  std::map<std::string, std::size_t> good_by_how = {{"measured", 0}};
  std::set<std::string> goals;
};

GoalCount count_goals(const Json& goals) {
  GoalCount count;
  for (const Json& goal : goals) {
    const Rating rating = rating_of(suite_text(goal, "verdict"));
    ++count.all;
    count.goals.insert(suite_text(goal, "goal"));
    count.labelled = count.labelled || goal.contains("label");
    count.missed = count.missed || rating == Rating::kBad;
    if (rating != Rating::kGood) continue;
    const std::string how = source_of_value(goal);
    ++count.good;
    if (how == "measured" || how == "recorded") ++count.seen;
    if (in_fit(goal)) ++count.in_fit;
    if (!how.empty()) ++count.good_by_how[how];
  }
  return count;
}

std::string count_text(const GoalCount& count) {
  // If all goals are the same, it is shown.
  const std::string goal = count.goals.size() == 1 && !count.goals.begin()->empty() && count.all > 1
                               ? fmt::format(" ({})", *count.goals.begin())
                               : "";
  std::string text = fmt::format("{} of {} goals{} reached", count.good, count.all, goal);
  if (!count.labelled || count.good == 0) return text;
  const char* between = ": ";
  for (const auto& [how, times] : count.good_by_how) {
    text += fmt::format("{}{} {}", between, times, how);
    between = ", ";
  }
  if (count.in_fit > 0) {
    text += fmt::format("; {} in the fit: the planner's constants were fitted to {}", count.in_fit,
                        count.in_fit == 1 ? "it" : "them");
  }
  return text;
}

// Names of the cases that failed.
std::string failures_of(const Json& suite) {
  std::string names;
  for (const Json& each : suite_cases(suite)) {
    if (suite_text(each, "state") != "failed") continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", suite_text(each, "case"));
  }
  if (!names.empty()) return "failed: " + names;
  const bool failed = suite.contains("failed") && suite.at("failed") == true;
  return failed ? "a figure could not be read" : "";
}

base::Result<PageTable> suite_goals(const Json& goals, const std::string& where) {
  PageTable table{"Goals", {"what", "verdict", "ours", "goal", "how", "note"}};
  for (const Json& goal : goals) {
    if (!goal.is_object() || !goal.contains("what")) {
      return base::fail(bad_suite(where, "has a goal that is not an object with 'what'"));
    }
    for (const auto& [key, value] : goal.items()) {
      if (value.is_structured()) {
        return base::fail(bad_suite(where, fmt::format("goals: '{}' is a list or object", key)));
      }
    }
    const std::string word = suite_text(goal, "verdict");
    const std::string how = source_of_value(goal);
    const std::string note = suite_text(goal, "note");
    // The verdict comes second: narrow screens show the first two columns.
    table.rows.push_back(
        {Cell(suite_text(goal, "what")),
         Cell(word.empty() ? "not judged" : word, std::nullopt, rating_of(word)), ours_of(goal),
         goal.contains("goal") ? suite_cell(goal.at("goal")) : Cell("—"),
         Cell(in_fit(goal) ? how + ", in the fit" : how), Cell(note == how ? "" : note)});
  }
  leave_out_blank(table);
  return table;
}

Verdict suite_verdict(const Json& suite) {
  const bool has_goals = suite.contains("goals") && !suite.at("goals").empty();
  const GoalCount count = has_goals ? count_goals(suite.at("goals")) : GoalCount{};
  const std::string failures = failures_of(suite);
  const bool cut = suite.contains("complete") && suite.at("complete") == false;
  Verdict verdict{.text = has_goals ? count_text(count) : ""};
  const auto add = [&](const std::string& text) {
    verdict.text += (verdict.text.empty() ? "" : "; ") + text;
  };
  if (!failures.empty()) add(failures);
  if (cut) add("the run was interrupted");
  if (suite.contains("quick") && suite.at("quick") == true) add("a quick run");
  const auto is = [&](Rating rating, const char* word) {
    verdict.rating = rating;
    verdict.word = word;
    return verdict;
  };
  if (!failures.empty()) return is(Rating::kBad, "failed");
  if (count.missed) return is(Rating::kBad, "missed");
  if (cut) return is(Rating::kOpen, "interrupted");
  if (!has_goals) return verdict;
  if (count.good < count.all) return is(Rating::kOpen, "open");
  if (!count.labelled || count.seen == count.all) return is(Rating::kGood, "reached");
  // Agreement of a plan with published figures is not a measurement.
  return is(Rating::kPlain, count.seen == 0 ? "planned" : "partly planned");
}

std::string with_source(std::string published, const std::string& url) {
  if (url.empty()) return published;
  return published.empty() ? url : published + ", " + url;
}

Section about_section(const Json& suite) {
  Section section{"The published experiment"};
  const std::string source = with_source(suite_text(suite, "reproduces"), suite_text(suite, "url"));
  if (!source.empty()) section.blocks.emplace_back(Note{"Published: " + source});
  if (const std::string note = suite_text(suite, "note"); !note.empty()) {
    section.blocks.emplace_back(Note{note});
  }
  if (suite.contains("quick") && suite.at("quick") == true) {
    section.blocks.emplace_back(Note{
        "A quick run: it only shows that the suite works, and measures too little to judge by."});
  }
  return section;
}

Section cases_section(const Json& suite) {
  PageTable table{"Cases", {"case", "kind", "state", "took", "why"}};
  for (const Json& each : suite_cases(suite)) {
    double took = 0;
    if (each.contains("wall_s") && each.at("wall_s").is_array()) {
      for (const Json& seconds : each.at("wall_s")) {
        took += seconds.is_number() ? seconds.get<double>() : 0;
      }
    }
    const std::string state = suite_text(each, "state");
    table.rows.push_back(
        {Cell(suite_text(each, "case")), Cell(suite_text(each, "kind")),
         Cell(state, std::nullopt, state == "failed" ? Rating::kBad : Rating::kPlain),
         took > 0 ? Cell(base::to_text(base::Seconds(took)), took) : Cell("—"),
         Cell(suite_text(each, "why"))});
  }
  if (table.rows.empty()) return {};
  leave_out_blank(table);
  return {"Cases", {std::move(table)}};
}

Section fingerprint_of_suite(const Json& suite) {
  PageTable table{"Where it ran", {"what", "value"}};
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
  };
  add("begun", suite_text(suite, "begun"));
  add("assay's commit", suite_text(suite, "commit"));
  add("quick", suite_text(suite, "quick"));
  add("complete", suite_text(suite, "complete"));
  add("folder", suite_text(suite, "directory"));
  const Json machine = suite.contains("machine") ? suite.at("machine") : Json();
  if (machine.is_object()) {
    add("host", suite_text(machine, "hostname"));
    add_machine_rows(table, machine);
  }
  Section section{"Fingerprint"};
  if (table.rows.empty()) return section;
  section.blocks.emplace_back(std::move(table));
  for (PageTable& gpus : gpu_tables(machine)) section.blocks.emplace_back(std::move(gpus));
  return section;
}

}  // namespace

base::Result<PagePart> suite_part(const Json& suite, const std::string& where) {
  if (!suite.is_object() || !suite.contains("suite") || !suite.at("suite").is_string()) {
    return base::fail(bad_suite(where, "is not a suite result: it has no 'suite'"));
  }
  const std::string title = suite_text(suite, "title");
  PagePart part{.kind = "suite",
                .title = suite.at("suite").get<std::string>() + (title.empty() ? "" : ": " + title),
                .subtitle = where};
  for (const char* key : {"goals", "tables"}) {
    if (suite.contains(key) && !suite.at(key).is_array()) {
      return base::fail(bad_suite(where, fmt::format("'{}' is not a list", key)));
    }
  }
  add_section(part, about_section(suite));
  if (suite.contains("goals") && !suite.at("goals").empty()) {
    ASSAY_TRY(PageTable goals, suite_goals(suite.at("goals"), where));
    add_section(part, {"Goals", {std::move(goals)}});
  }
  part.verdict = suite_verdict(suite);
  std::size_t charts = 0;
  if (suite.contains("tables")) {
    for (const Json& table : suite.at("tables")) {
      ASSAY_TRY(Section section, suite_table(table, where));
      for (Block& block : section.blocks) {
        if (auto* chart = std::get_if<Chart>(&block))
          chart->name = fmt::format("suite-{}", ++charts);
      }
      add_section(part, std::move(section));
    }
  }
  add_section(part, cases_section(suite));
  add_section(part, fingerprint_of_suite(suite));
  part.data = suite;
  return part;
}

}  // namespace assay::report
