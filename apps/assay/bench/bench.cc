// assay bench: suites that repeat published experiments, with the published figures beside ours.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "assay/bench/print.h"
#include "assay/compare/experiment_file.h"
#include "assay/project.h"
#include "assay/verbs.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "suite/catalogue.h"
#include "suite/outcome_text.h"
#include "suite/run_cases.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  std::string suite;
  std::string output;
  std::string resume;
  bool quick = false;
};

// Progress line: which case runs.
class BenchLine {
 public:
  BenchLine(std::size_t cases, bool quiet)
      : cases_(cases), shown_(!quiet && terminal_.is_terminal()) {}
  BenchLine(const BenchLine&) = delete;
  BenchLine& operator=(const BenchLine&) = delete;
  ~BenchLine() {
    if (shown_) terminal_.write(base::kClearLine);
    base::progress_on_stderr = false;
  }

  void show(std::size_t number, const suite::SuiteCase& suite_case) {
    if (!shown_) return;
    base::progress_on_stderr = true;
    const std::string line =
        fmt::format("case {} of {}: {} ({}), at most {}", number, cases_, suite_case.name,
                    to_text(suite_case.kind), base::to_text(suite_case.limit));
    terminal_.write(std::string(base::kClearLine) + base::shortened(line, terminal_.columns() - 1));
  }

 private:
  base::ProgressTerminal& terminal_ = base::stderr_terminal();
  const std::size_t cases_;
  const bool shown_;
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
                                        fmt::format("is a run of '{}'", folder.suite().name),
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
                       "assay bench mfu-scaling --quick -o mfu --json"},
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
