// assay bench: suites that repeat published experiments, with the published figures beside ours.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "assay/project.h"
#include "assay/shared/experiment_file.h"
#include "assay/verbs.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "report/numbers.h"
#include "suite/outcome_text.h"
#include "suite/read_suite.h"
#include "suite/run_cases.h"

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
    const std::string label = goal.ours ? suite::label_text(outcome, *goal.ours) : "";
    table.row({goal.table->title + ": " + goal.figure->what,
               suite::goal_text(*goal.figure->goal) +
                   (goal.figure->goal->kind == suite::GoalKind::kWithin ? " of published"
                                                                        : " " + goal.table->unit),
               goal.ours ? suite::value_text(*goal.table, *goal.ours) : "—", how(outcome, goal),
               std::string(to_text(goal.verdict)), goal.note == label ? "" : goal.note});
  }
  session.print(table);
}

void print_failures(const Session& session, const suite::SuiteOutcome& outcome) {
  for (const suite::CaseRun& run : outcome.cases) {
    if (run.state != suite::CaseState::kFailed) continue;
    session.print(fmt::format("case '{}' FAILED: {}\n", run.name, base::printable(run.why)));
  }
}

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

namespace fs = std::filesystem;

struct BenchOptions {
  std::string suite;
  std::string output;
  std::string resume;
  bool quick = false;
};

// Which case runs: redrawn on a terminal; elsewhere a line for each that takes time.
class BenchLine {
 public:
  BenchLine(std::size_t cases, bool quiet)
      : cases_(cases), quiet_(quiet), redrawn_(!quiet && terminal_.is_terminal()) {}
  BenchLine(const BenchLine&) = delete;
  BenchLine& operator=(const BenchLine&) = delete;
  ~BenchLine() {
    if (redrawn_) terminal_.write(base::kClearLine);
    base::progress_on_stderr = false;
  }

  void show(std::size_t number, const suite::SuiteCase& suite_case) {
    if (quiet_) return;
    const std::string line =
        fmt::format("case {} of {}: {} ({}), at most {}", number, cases_, suite_case.name,
                    to_text(suite_case.kind), report::limit_text(suite_case.limit));
    if (!redrawn_) {
      if (measures(suite_case.kind)) base::write_stderr("assay: " + line + "\n");
      return;
    }
    base::progress_on_stderr = true;
    terminal_.write(std::string(base::kClearLine) + base::shortened(line, terminal_.columns() - 1));
  }

 private:
  base::ProgressTerminal& terminal_ = base::stderr_terminal();
  const std::size_t cases_;
  const bool quiet_;
  const bool redrawn_;
};

// Reports mistakes in the suite's experiments before anything runs.
base::Result<void> check_experiments(const suite::Suite& suite, bool quick) {
  for (const suite::SuiteCase& suite_case : suite.cases) {
    if (suite_case.kind != suite::CaseKind::kCompare) continue;
    ASSAY_TRY(const std::string text, suite::filled_in(suite, suite_case, quick));
    ASSAY_TRY_VOID(experiment_in(
        text, fmt::format("{}: case '{}'", suite_case.origin.text(), suite_case.name)));
  }
  return {};
}

base::Result<base::ExitCode> list_suites(const Session& session) {
  std::vector<suite::Suite> suites;
  for (const std::string& name : suite::suite_names()) {
    ASSAY_TRY(suite::Suite suite, suite::find_suite(name));
    suites.push_back(std::move(suite));
  }
  print_suites(session, suites, suite::discover_host());
  return base::ExitCode::kYes;
}

base::Result<suite::SuiteFolder> begin_suite(const BenchOptions& options,
                                             const suite::SuiteHost& host) {
  ASSAY_TRY(suite::Suite suite, suite::find_suite(options.suite));
  ASSAY_TRY_VOID(check_experiments(suite, options.quick));
  ASSAY_TRY(const fs::path directory, results_folder("bench", options.output));
  return suite::SuiteFolder::create(directory, std::move(suite), options.quick, host);
}

base::Result<suite::SuiteFolder> resume_suite(const BenchOptions& options,
                                              const suite::SuiteHost& host) {
  if (options.quick || !options.output.empty()) {
    return base::fail(base::usage_error("--resume", "a resumed run keeps its options",
                                        "leave --quick and --output out"));
  }
  ASSAY_TRY(suite::SuiteFolder folder,
            suite::SuiteFolder::open(fs::absolute(options.resume), host));
  if (!options.suite.empty() && options.suite != folder.suite().name) {
    return base::fail(base::usage_error(options.resume,
                                        fmt::format("is a run of suite '{}'", folder.suite().name),
                                        "leave the name out"));
  }
  return folder;
}

base::ExitCode exit_code_of(const suite::SuiteOutcome& outcome) {
  bool failed = outcome.any_failed();
  bool open = outcome.interrupted();
  for (const suite::GoalOutcome& goal : outcome.goals) {
    failed = failed || goal.verdict == suite::IntervalVerdict::kFail;
    open = open || goal.verdict == suite::IntervalVerdict::kInconclusive;
  }
  if (failed) return base::ExitCode::kNo;
  return open ? base::ExitCode::kInconclusive : base::ExitCode::kYes;
}

base::Result<base::ExitCode> run_suite(const Session& session, const BenchOptions& options) {
  if (options.suite.empty() && options.resume.empty()) {
    if (options.quick || !options.output.empty()) {
      return base::fail(
          base::usage_error("bench", "no suite given",
                            fmt::format("one of {}", fmt::join(suite::suite_names(), ", "))));
    }
    return list_suites(session);
  }
  const suite::SuiteHost host = suite::discover_host();
  ASSAY_TRY(const suite::SuiteFolder folder,
            options.resume.empty() ? begin_suite(options, host) : resume_suite(options, host));
  std::vector<suite::CaseRun> runs;
  {
    ASSAY_TRY(const compare::Interrupts interrupts, compare::Interrupts::watch());
    BenchLine line(folder.suite().cases.size(), session.quiet);
    ASSAY_TRY(runs, suite::run_cases(folder, host, interrupts,
                                     [&](std::size_t number, const suite::SuiteCase& suite_case) {
                                       line.show(number, suite_case);
                                     }));
  }
  const suite::SuiteOutcome outcome = suite::outcome_of(folder, std::move(runs));
  const base::Json document = suite::to_json(outcome);
  ASSAY_TRY_VOID(base::replace_file(folder.directory() / "result.json", base::json_text(document)));
  session.print_json(document);
  print_outcome(session, outcome);
  if (outcome.interrupted() || outcome.any_failed()) {
    session.next(
        fmt::format("assay bench --resume {}", base::shell_quoted(folder.directory().string())));
  } else {
    session.next(fmt::format("assay report {}", base::shell_quoted(folder.directory().string())));
  }
  return exit_code_of(outcome);
}

}  // namespace

Verb bench_verb(const Session& session) {
  const auto options = std::make_shared<BenchOptions>();
  return {.name = "bench",
          .description = "repeat published experiments and compare the figures",
          .examples = {"assay bench", "assay bench interconnect",
                       "assay bench survival --quick -o survival --json"},
          .arguments = {{"SUITE", "a name or a suite file; default: list the suites",
                         &options->suite, false, suite::suite_names, true}},
          .options =
              {{"--quick",
                "run for seconds, only to check that a suite works; measured goals are not judged",
                &options->quick},
               {"-o,--output",
                "folder for runs and results; default: in the project, else a temporary one",
                &options->output,
                {},
                "DIR",
                true},
               {"--resume",
                "continue the run in this folder; finished cases are kept",
                &options->resume,
                {},
                "DIR",
                true}},
          .action = [&session, options] { return run_suite(session, *options); }};
}

}  // namespace assay::cli
