#include "assay/compare/execute.h"

#include <fmt/format.h>

#include "assay/compare/json.h"
#include "assay/compare/print.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process/environment.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/version.h"
#include "compare/run_experiment.h"
#include "compare/stopping.h"
#include "lineage/source/git.h"
#include "machine/discover.h"
#include "report/numbers.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// Where no line can be redrawn, one is written this often.
constexpr std::int64_t kWrittenEveryNs = 60'000'000'000;

// Only the commit is needed: untracked files are not read.
constexpr lineage::GitLimits kCommitOnly = {
    .untracked_file = 0, .untracked_total = 0, .timeout = std::chrono::milliseconds(3000)};

// How far it is: redrawn on a terminal, and now and then a line elsewhere.
class CompareProgressLine {
 public:
  CompareProgressLine(const compare::StopRule& rule, std::string title, bool quiet)
      : rule_(rule),
        title_(std::move(title)),
        quiet_(quiet),
        redrawn_(!quiet && terminal_.is_terminal()),
        next_ns_(base::system_clock().monotonic_ns() + (redrawn_ ? 0 : kWrittenEveryNs)) {}
  CompareProgressLine(const CompareProgressLine&) = delete;
  CompareProgressLine& operator=(const CompareProgressLine&) = delete;
  ~CompareProgressLine() {
    if (drawn_) terminal_.write(base::kClearLine);
    base::progress_on_stderr = false;
  }

  void show(const compare::ExperimentProgress& progress) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    if (quiet_ || now < next_ns_) return;
    next_ns_ = now + (redrawn_ ? kIntervalNs : kWrittenEveryNs);
    if (!redrawn_) return base::write_stderr("assay: " + line_of(progress) + "\n");
    drawn_ = true;
    base::progress_on_stderr = true;
    terminal_.write(std::string(base::kClearLine) +
                    base::shortened(line_of(progress), terminal_.columns() - 1));
  }

 private:
  static constexpr std::int64_t kIntervalNs = 100'000'000;

  [[nodiscard]] std::string line_of(const compare::ExperimentProgress& p) const {
    std::string line = title_ + fmt::format("pair {}", p.estimate.pairs);
    if (p.estimate.method != compare::Method::kNone) {
      line += fmt::format("  {} ± {:.2f} % (to {:g} %)",
                          report::signed_percent(compare::percent(p.estimate.centre)),
                          p.estimate.half_width_pct(), rule_.half_width_pct);
    }
    line += "  " + base::to_text(p.elapsed);
    if (p.left) line += ", about " + base::to_text(*p.left) + " left";
    return line;
  }

  const compare::StopRule rule_;
  const std::string title_;
  base::ProgressTerminal& terminal_ = base::stderr_terminal();
  const bool quiet_;
  const bool redrawn_;
  bool drawn_ = false;
  std::int64_t next_ns_;
};

std::string project_commit(const std::string& directory) {
  const lineage::GitState state =
      lineage::git_state(directory, base::Environment::from_current().entries(), kCommitOnly);
  if (!state.git || state.git->commit.empty()) return {};
  return state.git->commit + (state.git->dirty ? "-dirty" : "");
}

// This machine, this program and the project in `directory`, now.
compare::SessionRecord describe_session(const std::string& directory,
                                        std::vector<std::string> preflight) {
  const machine::Machine here = machine::discover();
  const base::Version& version = base::version();
  return {.begun = base::utc_text(base::system_clock().wall_ns()),
          .host = here.hostname,
          .machine = machine::summary(here),
          .kernel = here.os.kernel,
          .driver = here.drivers.nvidia,
          .assay = fmt::format("{} {}", version.release, version.commit),
          .project = project_commit(directory),
          .preflight = std::move(preflight)};
}

base::Result<void> record_analysis(const compare::InterimAnalysis& analysis,
                                   compare::Measured& measured, compare::Journal& journal) {
  // Without a pair there was no estimate to see.
  if (analysis.pairs == 0 || (!measured.analyses.empty() && analysis == measured.analyses.back())) {
    return {};
  }
  ASSAY_TRY_VOID(journal.add(analysis));
  measured.analyses.push_back(analysis);
  return {};
}

// A session that was killed did not record an analysis, but its progress line showed the estimate.
base::Result<void> record_killed_session(compare::Measured& measured, compare::Journal& journal) {
  const std::int64_t analysed = measured.analyses.empty() ? 0 : measured.analyses.back().run;
  if (measured.last_run() == analysed) return {};
  return record_analysis(compare::interim_analysis(measured, compare::StopReason::kNo,
                                                   compare::widest_estimate(measured).pairs),
                         measured, journal);
}

base::Result<compare::ExperimentEnd> run_with_progress(const Session& session,
                                                       const std::string& title,
                                                       compare::Measured& measured,
                                                       compare::Journal& journal,
                                                       compare::Host& host) {
  ASSAY_TRY(compare::Interrupts interrupts, compare::Interrupts::watch());
  CompareProgressLine line(measured.experiment.stop, title, session.quiet);
  return compare::run_experiment(
      measured, journal, host, interrupts,
      [&](const compare::ExperimentProgress& progress) { line.show(progress); });
}

ExecutedExperiment run_to_result(const Session& session, const std::string& title,
                                 compare::Journal& journal,
                                 std::unique_ptr<ExperimentResult> result) {
  compare::Measured& measured = result->measured;
  compare::Host host;
  measured.sessions.push_back(describe_session(measured.experiment.directory, host.preflight()));
  ASSAY_TRY_VOID(journal.add(measured.sessions.back()));
  ASSAY_TRY(compare::ExperimentEnd end, run_with_progress(session, title, measured, journal, host));
  const compare::InterimAnalysis analysis =
      compare::interim_analysis(measured, end.stop, end.estimate.pairs);
  ASSAY_TRY_VOID(record_analysis(analysis, measured, journal));
  result->findings = compare::findings_of(measured, analysis.alpha_share);
  result->stop = end.stop;
  result->preflight = measured.sessions.back().preflight;
  result->directory = journal.directory();
  result->failure = std::move(end.failure);
  ASSAY_TRY_VOID(base::replace_file(journal.directory() / "result.json",
                                    base::json_text(experiment_json(*result))));
  return result;
}

}  // namespace

std::string_view ExperimentResult::verdict_text(compare::IntervalVerdict verdict) const {
  return stop == compare::StopReason::kFailed ? compare::kNoVerdict : to_text(verdict);
}

ExecutedExperiment begin_experiment(const Session& session, const compare::Experiment& experiment,
                                    const fs::path& directory, const std::string& title) {
  auto result = std::make_unique<ExperimentResult>();
  result->measured.experiment = experiment;
  ASSAY_TRY(compare::Journal journal, compare::Journal::create(directory, experiment));
  return run_to_result(session, title, journal, std::move(result));
}

ExecutedExperiment resume_experiment(const Session& session, const CompareOptions& options,
                                     const fs::path& directory, const std::string& title) {
  auto result = std::make_unique<ExperimentResult>();
  compare::Measured& measured = result->measured;
  ASSAY_TRY(compare::Journal journal, compare::Journal::open(directory, measured));
  ASSAY_TRY_VOID(record_killed_session(measured, journal));
  compare::RuleChange change{.pairs = compare::widest_estimate(measured).pairs,
                             .from = {measured.experiment.stop, measured.experiment.judgement}};
  ASSAY_TRY_VOID(change_experiment(options, measured.experiment));
  change.to = {measured.experiment.stop, measured.experiment.judgement};
  if (change.from != change.to) {
    ASSAY_TRY_VOID(journal.add(change));
    measured.changes.push_back(change);
  }
  std::error_code error;
  fs::current_path(measured.experiment.directory, error);
  if (error) {
    return base::fail(base::unfit_error(measured.experiment.directory,
                                        "the working directory of the commands is gone"));
  }
  return run_to_result(session, title, journal, std::move(result));
}

}  // namespace assay::cli
