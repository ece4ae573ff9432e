#include "assay/bench/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "suite/outcome_text.h"

namespace assay::cli {
namespace {

using base::Json;

struct Possible {
  std::size_t cases = 0;
  std::vector<std::string> missing;  // distinct
};

Possible possible_here(const suite::Suite& suite, const suite::SuiteHost& host) {
  Possible possible;
  for (const suite::SuiteCase& suite_case : suite.cases) {
    const auto missing = suite::missing_requirement(suite_case.needs, host);
    if (!missing) {
      ++possible.cases;
    } else if (std::find(possible.missing.begin(), possible.missing.end(), *missing) ==
               possible.missing.end()) {
      possible.missing.push_back(*missing);
    }
  }
  return possible;
}

std::string cases_here(const Possible& possible, std::size_t cases) {
  if (possible.cases == cases) return "yes";
  return possible.cases == 0 ? "no" : fmt::format("{} of {} cases", possible.cases, cases);
}

void print_table(const Session& session, const suite::SuiteOutcome& outcome,
                 const suite::TableOutcome& found) {
  const suite::FigureTable& table = *found.table;
  session.print("\n" + base::printable(table.title) +
                (table.unit.empty() ? "" : ", " + base::printable(table.unit)) + "\n");
  base::Table shown({"figure", "published", "ours", "how", "difference", "remark"});
  shown.align(1, base::Align::kRight).align(2, base::Align::kRight).align(4, base::Align::kRight);
  for (const suite::FigureOutcome& figure : found.figures) {
    bool first = true;
    for (const suite::OurValue& ours : figure.ours) {
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

// As on report pages: a prediction by constants that were fitted to the published figure is marked.
std::string how(const suite::SuiteOutcome& outcome, const suite::GoalOutcome& goal) {
  if (!goal.ours) return "";
  return suite::label_text(outcome, *goal.ours) + (goal.ours->in_fit ? ", in the fit" : "");
}

void print_goals(const Session& session, const suite::SuiteOutcome& outcome) {
  if (outcome.goals.empty()) return;
  session.print("\n");
  base::Table table({"goal", "to reach", "ours", "how", "verdict", "remark"});
  table.align(2, base::Align::kRight);
  for (const suite::GoalOutcome& goal : outcome.goals) {
    table.row({goal.table->title + ": " + goal.figure->what,
               goal.figure->goal->text + (goal.figure->goal->kind == suite::GoalKind::kWithin
                                              ? " of published"
                                              : " " + goal.table->unit),
               goal.ours ? suite::value_text(*goal.table, *goal.ours) : "—", how(outcome, goal),
               std::string(to_text(goal.verdict)), goal.note});
  }
  session.print(table);
}

void print_failures(const Session& session, const suite::SuiteOutcome& outcome) {
  for (const suite::CaseRun& run : outcome.cases) {
    if (run.state != suite::CaseState::kFailed) continue;
    session.print(fmt::format("case '{}' FAILED: {}\n", run.name, base::printable(run.why)));
  }
}

}  // namespace

void print_suites(const Session& session, const std::vector<suite::Suite>& suites,
                  const suite::SuiteHost& host) {
  Json list = Json::array();
  base::Table table({"suite", "reproduces", "runs here", "missing"});
  for (const suite::Suite& suite : suites) {
    const Possible possible = possible_here(suite, host);
    list.push_back({{"name", suite.name},
                    {"title", suite.title},
                    {"reproduces", suite.reproduces},
                    {"url", suite.url},
                    {"cases", suite.cases.size()},
                    {"cases_here", possible.cases},
                    {"missing", possible.missing}});
    table.row({suite.name, suite.title, cases_here(possible, suite.cases.size()),
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

void print_outcome(const Session& session, const suite::SuiteOutcome& outcome) {
  const suite::Suite& suite = outcome.folder->suite();
  session.print(fmt::format("{}: {}\n", base::printable(suite.name), base::printable(suite.title)));
  if (!suite.reproduces.empty()) {
    session.print(fmt::format("published: {}{}\n", base::printable(suite.reproduces),
                              suite.url.empty() ? "" : ", " + base::printable(suite.url)));
  }
  if (outcome.folder->quick()) {
    session.print(
        "QUICK: this checks that the suite works; its measurements are too few to rely on\n");
  }
  for (const suite::TableOutcome& table : outcome.tables) print_table(session, outcome, table);
  if (!suite.note.empty()) session.print("\n" + base::printable(suite.note) + "\n");
  print_goals(session, outcome);
  session.print("\n");
  print_failures(session, outcome);
  if (outcome.interrupted()) session.print("INTERRUPTED: finished cases are kept\n");
  session.print(fmt::format("runs and results are in {}\n",
                            base::printable(outcome.folder->directory().string())));
}

}  // namespace assay::cli
