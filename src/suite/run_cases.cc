#include "suite/run_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "base/text.h"
#include "compare/journal.h"
#include "suite/collective.h"

namespace assay::suite {
namespace {

namespace fs = std::filesystem;
using compare::ProcessOutcome;

constexpr base::Bytes kLargestStderr(1 << 20);
constexpr std::size_t kMessageColumns = 160;
// `assay compare` exits with 0 to 2 if it has measured: PASS, FAIL, INCONCLUSIVE.
constexpr int kWorstVerdict = 2;

// The inherited environment with another PATH.
base::Environment environment_with(const std::string& path) {
  base::Environment environment = base::Environment::from_current();
  environment.set("PATH", path);
  return environment;
}

// The last line of a file; empty if there is none.
std::string last_line(const fs::path& file) {
  const auto text = base::read_file(file, kLargestStderr);
  if (!text) return "";
  const std::string_view trimmed = base::trim(*text);
  const std::size_t line = trimmed.find_last_of('\n');
  return base::shortened(
      base::printable(line == std::string_view::npos ? trimmed : trimmed.substr(line + 1)),
      kMessageColumns);
}

class CaseRunner {
 public:
  CaseRunner(const SuiteFolder& folder, const SuiteHost& host,
             const compare::Interrupts& interrupts)
      : folder_(folder),
        host_(host),
        interrupts_(interrupts),
        environment_(environment_with(host.path)) {}

  // Nothing if it was interrupted. `begins` is called unless the case is left out.
  template <class Begins>
  base::Result<std::optional<CaseRun>> run(const SuiteCase& suite_case, const Begins& begins) {
    CaseRun made{.name = suite_case.name, .state = CaseState::kDone};
    if (folder_.quick() && !suite_case.quick) {
      made.state = CaseState::kLeftOut;
      made.why = "takes too long for a quick run";
      return made;
    }
    if (auto missing = missing_requirement(suite_case.needs, host_)) {
      made.state = CaseState::kImpossible;
      made.why = *std::move(missing);
      return made;
    }
    begins();
    if (suite_case.kind == CaseKind::kCollective) return compute(suite_case, made);
    const base::Stopwatch watch;
    const std::int64_t times = folder_.quick() ? 1 : suite_case.repeat;
    for (std::int64_t i = 1; i <= times && made.state == CaseState::kDone; ++i) {
      ASSAY_TRY(const bool completed, run_once(suite_case, i, watch, made));
      if (!completed) return std::nullopt;
    }
    if (made.state == CaseState::kDone) {
      std::error_code ignored;
      fs::remove_all(folder_.directory() / "work" / suite_case.name, ignored);
    }
    return made;
  }

 private:
  base::Result<std::optional<CaseRun>> compute(const SuiteCase& suite_case, CaseRun made) {
    ASSAY_TRY(const std::string text, filled_in(folder_.suite(), suite_case, folder_.quick()));
    const base::Stopwatch watch;
    const auto json = collective_json(text);
    if (!json) {
      made.state = CaseState::kFailed;
      made.why = json.error().line();
      return made;
    }
    made.outputs.push_back("out/" + suite_case.name + ".out");
    made.wall_s.push_back(watch.elapsed().count());
    ASSAY_TRY_VOID(
        base::replace_file(folder_.directory() / made.outputs.back(), base::json_text(*json)));
    return made;
  }

  // False if it was interrupted.
  base::Result<bool> run_once(const SuiteCase& suite_case, std::int64_t repetition,
                              const base::Stopwatch& watch, CaseRun& made) {
    const std::string name =
        suite_case.repeat > 1 ? fmt::format("{}-{}", suite_case.name, repetition) : suite_case.name;
    const fs::path work =
        folder_.directory() / "work" / suite_case.name / std::to_string(repetition);
    std::error_code error;
    // Always a new folder, except for an experiment that is resumed.
    if (suite_case.kind != CaseKind::kCompare) fs::remove_all(work, error);
    fs::create_directories(work, error);
    if (error) return base::fail(base::system_error(work, "cannot be created", error.value()));
    ASSAY_TRY(const std::string command, command_of(suite_case));
    const std::string out = "out/" + name + ".out";
    const compare::ProcessRequest request{
        .arguments = compare::shell_arguments(
            fmt::format("cd {} || exit 3\n{}{}", base::shell_quoted(work.string()),
                        measures(suite_case.kind) ? own_project() : "", command)),
        .environment = environment_,
        .out = folder_.directory() / out,
        .err = folder_.directory() / "out" / (name + ".err"),
        .timeout = suite_case.limit - watch.elapsed()};
    ASSAY_TRY(const ProcessOutcome outcome, compare::run_process(request, interrupts_));
    if (outcome.interrupted) return false;
    if (!succeeded(suite_case, outcome)) {
      made.state = CaseState::kFailed;
      made.why = why_failed(suite_case, outcome, request);
      return true;
    }
    made.outputs.push_back(out);
    made.wall_s.push_back(outcome.wall_s);
    return true;
  }

  // So that runs recorded by a case are not stored in the user's project.
  [[nodiscard]] std::string own_project() const {
    return base::shell_quoted(host_.program) + " init --quiet || exit 3\n";
  }

  base::Result<std::string> command_of(const SuiteCase& suite_case) {
    ASSAY_TRY(std::string text, filled_in(folder_.suite(), suite_case, folder_.quick()));
    const std::string assay = base::shell_quoted(host_.program);
    if (suite_case.kind == CaseKind::kCommand) return text;
    if (suite_case.kind == CaseKind::kPlan)
      return fmt::format("exec {} plan {} --json", assay, text);
    if (suite_case.kind == CaseKind::kRows) {
      const fs::path rows = folder_.directory() / "cases" / (suite_case.name + ".csv");
      ASSAY_TRY_VOID(base::replace_file(rows, text));
      return fmt::format("exec {} plan --rows {} --json --quiet", assay,
                         base::shell_quoted(rows.string()));
    }
    const fs::path journal = folder_.directory() / "compare" / suite_case.name;
    if (compare::has_begun(journal)) {
      return fmt::format("exec {} compare --resume {} --json --quiet", assay,
                         base::shell_quoted(journal.string()));
    }
    const fs::path file = folder_.directory() / "cases" / (suite_case.name + ".toml");
    ASSAY_TRY_VOID(base::replace_file(file, text));
    return fmt::format("exec {} compare --file {} -o {} --json --quiet", assay,
                       base::shell_quoted(file.string()), base::shell_quoted(journal.string()));
  }

  static bool succeeded(const SuiteCase& suite_case, const ProcessOutcome& outcome) {
    if (outcome.ok()) return true;
    // A plan whose answer is no or perhaps is a plan: the job does not fit, or may not.
    if (suite_case.kind == CaseKind::kPlan && !outcome.timed_out &&
        base::shell_exit_code(outcome.wait_status) <=
            static_cast<int>(base::ExitCode::kInconclusive)) {
      return true;
    }
    return suite_case.kind == CaseKind::kCompare && !outcome.timed_out &&
           base::shell_exit_code(outcome.wait_status) <= kWorstVerdict;
  }

  static std::string why_failed(const SuiteCase& suite_case, const ProcessOutcome& outcome,
                                const compare::ProcessRequest& request) {
    const std::string message = last_line(request.err);
    const std::string how = outcome.timed_out ? fmt::format("reached its time limit of {}",
                                                            base::to_text(suite_case.limit))
                                              : outcome.how();
    return fmt::format("{}{}; its output is in {}", how, message.empty() ? "" : ": " + message,
                       (message.empty() ? request.out : request.err).string());
  }

  const SuiteFolder& folder_;
  const SuiteHost& host_;
  const compare::Interrupts& interrupts_;
  const base::Environment environment_;
};

}  // namespace

base::Result<std::vector<CaseRun>> run_cases(const SuiteFolder& folder, const SuiteHost& host,
                                             const compare::Interrupts& interrupts,
                                             const CaseCallback& callback) {
  CaseRunner runner(folder, host, interrupts);
  std::vector<CaseRun> runs;
  bool interrupted = false;
  for (const SuiteCase& suite_case : folder.suite().cases) {
    const auto kept = folder.kept(suite_case.name);
    if (kept && kept->state == CaseState::kDone) {
      runs.push_back(*kept);
      continue;
    }
    interrupted = interrupted || interrupts.happened();
    if (!interrupted) {
      ASSAY_TRY(std::optional<CaseRun> made, runner.run(suite_case, [&] {
        if (callback) callback(runs.size() + 1, suite_case);
      }));
      if (made) {
        ASSAY_TRY_VOID(folder.keep(*made));
        runs.push_back(*std::move(made));
        continue;
      }
      interrupted = true;
    }
    runs.push_back({.name = suite_case.name, .why = "the run was interrupted before it"});
  }
  return runs;
}

}  // namespace assay::suite
