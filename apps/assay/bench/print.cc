#include "assay/bench/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace assay::cli {
namespace {

using base::Json;

struct Possible {
  std::size_t steps = 0;
  std::vector<std::string> missing;  // each once
};

Possible possible_here(const suite::Suite& suite, const suite::Here& here) {
  Possible possible;
  for (const suite::Step& step : suite.steps) {
    const auto missing = suite::missing_here(step.needs, here);
    if (!missing) {
      ++possible.steps;
    } else if (std::find(possible.missing.begin(), possible.missing.end(), *missing) ==
               possible.missing.end()) {
      possible.missing.push_back(*missing);
    }
  }
  return possible;
}

std::string steps_here(const Possible& possible, std::size_t steps) {
  if (possible.steps == steps) return "yes";
  return possible.steps == 0 ? "no" : fmt::format("{} of {} steps", possible.steps, steps);
}

void print_table(const Session& session, const suite::Outcome& outcome,
                 const suite::TableOutcome& found) {
  const suite::FigureTable& table = *found.table;
  session.print("\n" + base::printable(table.title) +
                (table.unit.empty() ? "" : ", " + base::printable(table.unit)) + "\n");
  base::Table shown({"figure", "published", "ours", "how", "difference", "remark"});
  shown.align(1, base::Align::kRight).align(2, base::Align::kRight).align(4, base::Align::kRight);
  for (const suite::FigureOutcome& figure : found.figures) {
    bool first = true;
    for (const suite::Ours& ours : figure.ours) {
      shown.row({first ? figure.figure->what : "",
                 first ? suite::published_text(table, *figure.figure) : "",
                 suite::value_text(table, ours), suite::label_text(outcome, ours),
                 suite::difference_text(*figure.figure, ours),
                 suite::remark_text(*figure.figure, ours)});
      first = false;
    }
  }
  session.print(shown);
  if (!table.note.empty()) session.print(base::printable(table.note) + "\n");
}

void print_goals(const Session& session, const suite::Outcome& outcome) {
  if (outcome.goals.empty()) return;
  session.print("\n");
  base::Table table({"goal", "to reach", "ours", "verdict", "remark"});
  table.align(2, base::Align::kRight);
  for (const suite::GoalOutcome& goal : outcome.goals) {
    table.row({goal.table->title + ": " + goal.figure->what,
               goal.figure->goal->text + (goal.figure->goal->kind == suite::GoalKind::kWithin
                                              ? " of published"
                                              : " " + goal.table->unit),
               goal.ours ? suite::value_text(*goal.table, *goal.ours) : "—",
               std::string(to_text(goal.verdict)), goal.note});
  }
  session.print(table);
}

void print_failures(const Session& session, const suite::Outcome& outcome) {
  for (const suite::StepRun& run : outcome.steps) {
    if (run.state != suite::StepState::kFailed) continue;
    session.print(fmt::format("step '{}' FAILED: {}\n", run.step, base::printable(run.why)));
  }
}

}  // namespace

void print_suites(const Session& session, const std::vector<suite::Suite>& suites,
                  const suite::Here& here) {
  Json list = Json::array();
  base::Table table({"suite", "reproduces", "runs here", "what is missing"});
  for (const suite::Suite& suite : suites) {
    const Possible possible = possible_here(suite, here);
    list.push_back({{"name", suite.name},
                    {"title", suite.title},
                    {"reproduces", suite.reproduces},
                    {"url", suite.url},
                    {"steps", suite.steps.size()},
                    {"steps_here", possible.steps},
                    {"missing", possible.missing}});
    table.row({suite.name, suite.title, steps_here(possible, suite.steps.size()),
               possible.missing.empty() ? "" : possible.missing.front()});
    table.row({"", suite.reproduces, "", possible.missing.size() > 1 ? possible.missing[1] : ""});
    for (std::size_t i = 2; i < possible.missing.size(); ++i) {
      table.row({"", "", "", possible.missing[i]});
    }
  }
  session.print_json(Json{{"suites", list}});
  session.print(table);
  session.next("assay bench tracer-overhead --quick");
}

void print_outcome(const Session& session, const suite::Outcome& outcome) {
  const suite::Suite& suite = outcome.folder->suite();
  session.print(fmt::format("{}: {}\n", base::printable(suite.name), base::printable(suite.title)));
  if (!suite.reproduces.empty()) {
    session.print(fmt::format("published: {}{}\n", base::printable(suite.reproduces),
                              suite.url.empty() ? "" : ", " + base::printable(suite.url)));
  }
  if (outcome.folder->quick()) {
    session.print("QUICK: it shows that the suite works; its figures are too few to believe\n");
  }
  for (const suite::TableOutcome& table : outcome.tables) print_table(session, outcome, table);
  if (!suite.note.empty()) session.print("\n" + base::printable(suite.note) + "\n");
  print_goals(session, outcome);
  session.print("\n");
  print_failures(session, outcome);
  if (outcome.interrupted()) session.print("INTERRUPTED: what was measured is kept\n");
  session.print(
      fmt::format("all of it is in {}\n", base::printable(outcome.folder->directory().string())));
}

}  // namespace assay::cli
