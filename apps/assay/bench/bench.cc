// assay bench: named suites that repeat published experiments, with the published figures beside
// ours.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "assay/bench/print.h"
#include "assay/compare/options.h"
#include "assay/project.h"
#include "assay/verbs.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "suite/catalogue.h"
#include "suite/run_steps.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct BenchWords {
  std::string suite;
  std::string output;
  std::string resume;
  bool quick = false;
};

// Which step runs, on one line that comes and goes.
class BenchLine {
 public:
  BenchLine(std::size_t steps, bool quiet)
      : steps_(steps), shown_(!quiet && terminal_.is_terminal()) {}
  BenchLine(const BenchLine&) = delete;
  BenchLine& operator=(const BenchLine&) = delete;
  ~BenchLine() {
    if (shown_) terminal_.write(base::kClearLine);
    base::progress_on_stderr = false;
  }

  void show(std::size_t place, const suite::Step& step) {
    if (!shown_) return;
    base::progress_on_stderr = true;
    const std::string line = fmt::format("step {} of {}: {} ({}), at most {}", place, steps_,
                                         step.name, to_text(step.kind), base::to_text(step.limit));
    terminal_.write(std::string(base::kClearLine) + base::shortened(line, terminal_.columns() - 1));
  }

 private:
  base::ProgressTerminal& terminal_ = base::stderr_terminal();
  const std::size_t steps_;
  const bool shown_;
};

// Experiments inside a suite are read before anything runs.
base::Result<void> check_experiments(const suite::Suite& suite, bool quick) {
  for (const suite::Step& step : suite.steps) {
    if (step.kind != suite::StepKind::kCompare) continue;
    ASSAY_TRY(const std::string text, suite::filled_in(suite, step, quick));
    ASSAY_TRY_VOID(
        experiment_in(text, fmt::format("{}: step '{}'", step.origin.text(), step.name)));
  }
  return {};
}

base::Result<base::ExitCode> list_suites(const Session& session) {
  std::vector<suite::Suite> suites;
  for (const std::string& name : suite::suite_names()) {
    ASSAY_TRY(suite::Suite suite, suite::find_suite(name));
    suites.push_back(std::move(suite));
  }
  print_suites(session, suites, suite::look_around());
  return base::ExitCode::kYes;
}

base::Result<suite::SuiteFolder> begin_suite(const BenchWords& words, const suite::Here& here) {
  ASSAY_TRY(suite::Suite suite, suite::find_suite(words.suite));
  ASSAY_TRY_VOID(check_experiments(suite, words.quick));
  ASSAY_TRY(const fs::path directory, kept_folder("bench", words.output));
  return suite::SuiteFolder::create(directory, std::move(suite), words.quick, here);
}

base::Result<suite::SuiteFolder> go_on_with_suite(const BenchWords& words,
                                                  const suite::Here& here) {
  if (words.quick || !words.output.empty()) {
    return base::fail(base::usage_error("--resume", "a run goes on as it began",
                                        "leave --quick and --output out"));
  }
  ASSAY_TRY(suite::SuiteFolder folder, suite::SuiteFolder::open(fs::absolute(words.resume), here));
  if (!words.suite.empty() && words.suite != folder.suite().name) {
    return base::fail(base::usage_error(
        words.resume, fmt::format("is a run of '{}'", folder.suite().name), "leave the name out"));
  }
  return folder;
}

base::ExitCode exit_code_of(const suite::Outcome& outcome) {
  bool failed = outcome.any_failed();
  bool open = outcome.interrupted();
  for (const suite::GoalOutcome& goal : outcome.goals) {
    failed = failed || goal.verdict == suite::GoalVerdict::kFail;
    open = open || goal.verdict == suite::GoalVerdict::kInconclusive;
  }
  if (failed) return base::ExitCode::kNo;
  return open ? base::ExitCode::kInconclusive : base::ExitCode::kYes;
}

base::Result<base::ExitCode> run_suite(const Session& session, const BenchWords& words) {
  if (words.suite.empty() && words.resume.empty()) {
    if (words.quick || !words.output.empty()) {
      return base::fail(
          base::usage_error("bench", "which suite?",
                            fmt::format("one of {}", fmt::join(suite::suite_names(), ", "))));
    }
    return list_suites(session);
  }
  const suite::Here here = suite::look_around();
  ASSAY_TRY(const suite::SuiteFolder folder,
            words.resume.empty() ? begin_suite(words, here) : go_on_with_suite(words, here));
  std::vector<suite::StepRun> runs;
  {
    ASSAY_TRY(const compare::Interrupts interrupts, compare::Interrupts::watch());
    BenchLine line(folder.suite().steps.size(), session.quiet);
    ASSAY_TRY(runs, suite::run_steps(folder, here, interrupts,
                                     [&](std::size_t place, const suite::Step& step) {
                                       line.show(place, step);
                                     }));
  }
  const suite::Outcome outcome = suite::outcome_of(folder, std::move(runs));
  const base::Json document = suite::to_json(outcome);
  ASSAY_TRY_VOID(base::replace_file(folder.directory() / "result.json", base::json_text(document)));
  session.print_json(document);
  print_outcome(session, outcome);
  if (outcome.interrupted() || outcome.any_failed()) {
    session.next(
        fmt::format("assay bench --resume {}", base::shell_quoted(folder.directory().string())));
  }
  return exit_code_of(outcome);
}

}  // namespace

Verb bench_verb(const Session& session) {
  const auto words = std::make_shared<BenchWords>();
  return {.name = "bench",
          .description = "published experiments as suites: their figures beside ours",
          .examples = {"assay bench", "assay bench interconnect",
                       "assay bench mfu-scaling -o mfu --json"},
          .arguments = {{"SUITE", "a name, or a suite file; none: list them", &words->suite, false,
                         suite::suite_names, true}},
          .options = {{"--quick",
                       "a few seconds, to see that it works; judges nothing that it measures",
                       &words->quick},
                      {"-o,--output",
                       "folder for runs and results; default: in the project, or temporary",
                       &words->output,
                       {},
                       "DIR",
                       true},
                      {"--resume",
                       "go on with the run in this folder: what is done stays",
                       &words->resume,
                       {},
                       "DIR",
                       true}},
          .action = [&session, words] { return run_suite(session, *words); }};
}

}  // namespace assay::cli
