#include "suite/run_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "base/text.h"

namespace assay::suite {
namespace {

namespace fs = std::filesystem;
using compare::ProcessOutcome;

constexpr base::Bytes kLargestComplaint(1 << 20);
constexpr std::size_t kComplaintColumns = 160;
// What `assay compare` exits with when it has measured: PASS, FAIL, INCONCLUSIVE.
constexpr int kWorstVerdict = 2;

// That of this process, with the folders of its own programs in front of PATH.
base::Environment environment_with(const std::string& path) {
  base::Environment environment = base::Environment::from_current();
  environment.set("PATH", path);
  return environment;
}

// The last line of what a step complained about, or nothing.
std::string complaint(const fs::path& file) {
  const auto text = base::read_file(file, kLargestComplaint);
  if (!text) return "";
  const std::string_view said = base::trim(*text);
  const std::size_t line = said.find_last_of('\n');
  return base::shortened(
      base::printable(line == std::string_view::npos ? said : said.substr(line + 1)),
      kComplaintColumns);
}

class StepRunner {
 public:
  StepRunner(const SuiteFolder& folder, const Here& here, const compare::Interrupts& interrupts)
      : folder_(folder),
        here_(here),
        interrupts_(interrupts),
        environment_(environment_with(here.path)) {}

  // Nothing: it was interrupted.
  base::Result<std::optional<StepRun>> run(const Step& step) {
    StepRun made{.step = step.name, .state = StepState::kDone};
    if (folder_.quick() && !step.quick) {
      made.state = StepState::kLeftOut;
      made.why = "takes longer than a quick run";
      return made;
    }
    if (auto missing = missing_here(step.needs, here_)) {
      made.state = StepState::kImpossible;
      made.why = *std::move(missing);
      return made;
    }
    if (step.kind == StepKind::kCollective) return compute(step, made);
    const base::Stopwatch watch;
    const std::int64_t times = folder_.quick() ? 1 : step.repeat;
    for (std::int64_t i = 1; i <= times && made.state == StepState::kDone; ++i) {
      ASSAY_TRY(const bool went_on, run_once(step, i, watch, made));
      if (!went_on) return std::nullopt;
    }
    if (made.state == StepState::kDone) {
      std::error_code ignored;
      fs::remove_all(folder_.directory() / "work" / step.name, ignored);
    }
    return made;
  }

 private:
  base::Result<std::optional<StepRun>> compute(const Step& step, StepRun made) {
    ASSAY_TRY(const std::string text, filled_in(folder_.suite(), step, folder_.quick()));
    const base::Stopwatch watch;
    const auto json = collective_json(text);
    if (!json) {
      made.state = StepState::kFailed;
      made.why = json.error().line();
      return made;
    }
    made.outputs.push_back("out/" + step.name + ".out");
    made.wall_s.push_back(watch.elapsed().count());
    ASSAY_TRY_VOID(
        base::replace_file(folder_.directory() / made.outputs.back(), base::json_text(*json)));
    return made;
  }

  // False: it was interrupted.
  base::Result<bool> run_once(const Step& step, std::int64_t repetition,
                              const base::Stopwatch& watch, StepRun& made) {
    const std::string name =
        step.repeat > 1 ? fmt::format("{}-{}", step.name, repetition) : step.name;
    const fs::path work = folder_.directory() / "work" / step.name / std::to_string(repetition);
    std::error_code error;
    // A new one, but for an experiment that goes on in the old one.
    if (step.kind != StepKind::kCompare) fs::remove_all(work, error);
    fs::create_directories(work, error);
    if (error) return base::fail(base::system_error(work, "cannot be made", error.value()));
    ASSAY_TRY(const std::string command, command_of(step));
    const std::string out = "out/" + name + ".out";
    const compare::ProcessRequest request{
        .words = compare::shell_words(
            fmt::format("cd {} || exit 3\n{}{}", base::shell_quoted(work.string()),
                        measures(step.kind) ? own_project() : "", command)),
        .environment = environment_,
        .out = folder_.directory() / out,
        .err = folder_.directory() / "out" / (name + ".err"),
        .timeout = step.limit - watch.elapsed()};
    ASSAY_TRY(const ProcessOutcome outcome, compare::run_process(request, interrupts_));
    if (outcome.interrupted) return false;
    if (!succeeded(step, outcome)) {
      made.state = StepState::kFailed;
      made.why = why_failed(step, outcome, request);
      return true;
    }
    made.outputs.push_back(out);
    made.wall_s.push_back(outcome.wall_s);
    return true;
  }

  // What a step records is no part of the project that the suite is run in.
  [[nodiscard]] std::string own_project() const {
    return base::shell_quoted(here_.program) + " init --quiet || exit 3\n";
  }

  base::Result<std::string> command_of(const Step& step) {
    ASSAY_TRY(std::string text, filled_in(folder_.suite(), step, folder_.quick()));
    const std::string assay = base::shell_quoted(here_.program);
    if (step.kind == StepKind::kCommand) return text;
    if (step.kind == StepKind::kPlan) return fmt::format("exec {} plan {} --json", assay, text);
    if (step.kind == StepKind::kRows) {
      const fs::path rows = folder_.directory() / "steps" / (step.name + ".csv");
      ASSAY_TRY_VOID(base::replace_file(rows, text));
      return fmt::format("exec {} plan --rows {} --json --quiet", assay,
                         base::shell_quoted(rows.string()));
    }
    const fs::path journal = folder_.directory() / "compare" / step.name;
    std::error_code ignored;
    if (fs::exists(journal / "runs.jsonl", ignored)) {
      return fmt::format("exec {} compare --resume {} --json", assay,
                         base::shell_quoted(journal.string()));
    }
    const fs::path file = folder_.directory() / "steps" / (step.name + ".toml");
    ASSAY_TRY_VOID(base::replace_file(file, text));
    return fmt::format("exec {} compare --file {} -o {} --json", assay,
                       base::shell_quoted(file.string()), base::shell_quoted(journal.string()));
  }

  static bool succeeded(const Step& step, const ProcessOutcome& outcome) {
    if (outcome.ok()) return true;
    return step.kind == StepKind::kCompare && !outcome.timed_out &&
           base::shell_exit_code(outcome.wait_status) <= kWorstVerdict;
  }

  static std::string why_failed(const Step& step, const ProcessOutcome& outcome,
                                const compare::ProcessRequest& request) {
    const std::string said = complaint(request.err);
    const std::string how = outcome.timed_out
                                ? fmt::format("ran into its limit of {}", base::to_text(step.limit))
                                : outcome.how();
    return fmt::format("{}{}; its output is in {}", how, said.empty() ? "" : ": " + said,
                       (said.empty() ? request.out : request.err).string());
  }

  const SuiteFolder& folder_;
  const Here& here_;
  const compare::Interrupts& interrupts_;
  const base::Environment environment_;
};

}  // namespace

base::Result<std::vector<StepRun>> run_steps(const SuiteFolder& folder, const Here& here,
                                             const compare::Interrupts& interrupts,
                                             const StepWatcher& watcher) {
  StepRunner runner(folder, here, interrupts);
  std::vector<StepRun> runs;
  bool interrupted = false;
  for (const Step& step : folder.suite().steps) {
    const auto kept = folder.kept(step.name);
    if (kept && kept->state == StepState::kDone) {
      runs.push_back(*kept);
      continue;
    }
    interrupted = interrupted || interrupts.happened();
    if (!interrupted) {
      if (watcher) watcher(runs.size() + 1, step);
      ASSAY_TRY(std::optional<StepRun> made, runner.run(step));
      if (made) {
        ASSAY_TRY_VOID(folder.keep(*made));
        runs.push_back(*std::move(made));
        continue;
      }
      interrupted = true;
    }
    runs.push_back({.step = step.name, .why = "the run was interrupted before"});
  }
  return runs;
}

}  // namespace assay::suite
