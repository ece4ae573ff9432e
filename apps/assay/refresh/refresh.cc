// assay refresh [TARGET…]: runs the stale stages of the project again, or of what a target needs.
#include "lineage/refresh/refresh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <memory>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/process/program.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "lineage/graph/dag_view.h"
#include "lineage/refresh/plan_refresh.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

constexpr std::int64_t kMostJobs = 1024;

struct RefreshOptions {
  std::vector<std::string> targets;
  std::string jobs = "1";
  bool dry_run = false;
  bool keep_going = false;
  bool overwrite = false;
};

using Shown = std::function<std::string(const std::string&)>;

base::Json reasons_json(const std::vector<lineage::Reason>& reasons, const Shown& shown) {
  base::Json why = base::Json::array();
  for (const lineage::Reason& reason : reasons) why.push_back(reason.text(shown));
  return why;
}

std::string reason_text(const lineage::PlannedRefresh& one, const Shown& shown) {
  const std::string more =
      one.reasons.size() > 1 ? fmt::format(", and {} more", one.reasons.size() - 1) : "";
  return one.reasons.front().text(shown) + more;
}

void print_no_stages(const Session& session) {
  session.print("no run has succeeded yet\n");
  session.next("assay log");
}

// A replaced output is no reason to run its stage: in their order, the other one replaces it again.
// Nor is doubt: running the stage might not remove it.
void print_nothing_stale(const Session& session, const std::vector<std::int64_t>& replaced,
                         const std::vector<std::int64_t>& unsure) {
  if (replaced.empty() && unsure.empty()) return session.print("everything is fresh\n");
  std::string text = "nothing is stale";
  if (!replaced.empty()) {
    text += fmt::format("; another stage has replaced the output of stage {}",
                        fmt::join(replaced, ", "));
  }
  if (!unsure.empty()) {
    text += fmt::format("; whether stage {} is fresh is not known", fmt::join(unsure, ", "));
  }
  session.print(text + "\n");
  session.next("assay status");
}

ExitCode print_plan(const Session& session, const std::vector<lineage::PlannedRefresh>& plan,
                    const std::vector<std::int64_t>& replaced,
                    const std::vector<std::int64_t>& unsure, const Shown& shown,
                    const std::string& again) {
  base::Json list = base::Json::array();
  base::Table table({"stage", "run", "command", "why"});
  for (const lineage::PlannedRefresh& one : plan) {
    list.push_back({{"stage", one.stage},
                    {"run", one.run},
                    {"command", one.command},
                    {"why", reasons_json(one.reasons, shown)},
                    {"obstacle", base::or_null(one.obstacle)}});
    table.row({fmt::format("{}", one.stage), fmt::format("{}", one.run), cell_text(one.command),
               reason_text(one, shown)});
  }
  session.print_json({{"dry_run", true}, {"stages", std::move(list)}});
  if (plan.empty()) {
    print_nothing_stale(session, replaced, unsure);
    return ExitCode::kYes;
  }
  session.print(table);
  for (const lineage::PlannedRefresh& one : plan) {
    if (one.obstacle.empty()) continue;
    session.print(
        fmt::format("cannot run: stage {}: {}\n", one.stage, base::printable(one.obstacle)));
  }
  session.next(again);
  return ExitCode::kYes;
}

ExitCode print_report(const Session& session, const lineage::RefreshReport& report,
                      const Shown& shown) {
  base::Json stages = base::Json::array();
  base::Table table({"stage", "run", "outcome", "took", "command"});
  store::RunId failed = 0;  // the first
  bool all_well = !report.no_stages && report.stale.empty() && report.interrupted_by == 0;
  for (const lineage::RefreshedStage& one : report.stages) {
    using lineage::StageOutcome;
    const bool ran = one.outcome == StageOutcome::kDone || one.outcome == StageOutcome::kFailed;
    all_well =
        all_well && (one.outcome == StageOutcome::kDone || one.outcome == StageOutcome::kUnneeded);
    stages.push_back({{"stage", one.stage},
                      {"run", one.run == 0 ? base::Json() : base::Json(one.run)},
                      {"command", one.command},
                      {"outcome", to_text(one.outcome)},
                      {"exit_code", ran ? base::Json(one.exit_code) : base::Json()},
                      {"signal", base::or_null(one.signal)},
                      {"duration_s", ran ? base::Json(one.duration_s) : base::Json()},
                      {"why", base::or_null(one.why)}});
    std::string outcome(to_text(one.outcome));
    if (one.outcome == StageOutcome::kFailed) outcome += ": " + failure_text(one);
    if (one.outcome == StageOutcome::kFailed && failed == 0) failed = one.run;
    if (!one.why.empty()) outcome += ": " + base::printable(one.why);
    table.row({fmt::format("{}", one.stage), one.run == 0 ? "" : fmt::format("{}", one.run),
               outcome, ran ? base::to_text(base::Seconds(one.duration_s)) : "",
               cell_text(one.command)});
  }
  base::Json stale = base::Json::array();
  for (const lineage::PlannedRefresh& one : report.stale) {
    stale.push_back({{"stage", one.stage}, {"why", reasons_json(one.reasons, shown)}});
  }
  session.print_json({{"dry_run", false},
                      {"fresh", report.stale.empty() && report.unsure.empty()},
                      {"unsure", report.unsure},
                      {"stages", std::move(stages)},
                      {"stale", std::move(stale)}});
  if (!table.empty()) session.print(table);
  if (report.no_stages) {
    print_no_stages(session);
  } else if (report.stale.empty()) {
    print_nothing_stale(session, report.replaced, report.unsure);
  } else {
    for (const lineage::PlannedRefresh& one : report.stale) {
      session.print(fmt::format("stage {} is stale: {}\n", one.stage, reason_text(one, shown)));
    }
    session.next(failed == 0 ? "assay log" : fmt::format("assay show {}", failed));
  }
  return all_well ? ExitCode::kYes : ExitCode::kNo;
}

Result<ExitCode> refresh(const Session& session, const RefreshOptions& options) {
  ASSAY_TRY(const std::int64_t jobs,
            number_option<std::int64_t>("refresh --jobs", options.jobs, 1, kMostJobs));
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  const Shown shown = [&](const std::string& path) {
    return base::printable(lineage::shown_path(path, directory));
  };
  lineage::RefreshRequest request{.jobs = static_cast<std::size_t>(jobs),
                                  .keep_going = options.keep_going,
                                  .program = base::own_program()};
  if (options.overwrite) request.edited = lineage::EditedOutputs::kOverwrite;
  ASSAY_TRY(lineage::StageStates states, lineage::load_stage_states(store));
  const bool no_stages = states.stages.runs().empty();
  std::string again = "assay refresh";
  for (const std::string& target : options.targets) {
    ASSAY_TRY(const std::vector<std::int64_t> named,
              lineage::stages_of_target(store, states.stages, target, directory));
    request.targets.insert(request.targets.end(), named.begin(), named.end());
    again += " " + base::path_argument(target);
  }
  if (options.dry_run && no_stages) {
    session.print_json({{"dry_run", true}, {"stages", base::Json::array()}});
    print_no_stages(session);
    return ExitCode::kNo;
  }
  if (options.dry_run) {
    return print_plan(session, lineage::plan_refresh(states, request.targets, request.edited),
                      lineage::replaced_stages(states, request.targets),
                      lineage::unsure_stages(states, request.targets), shown, again);
  }
  // Standard output is reserved for the report.
  request.output = [&session](std::string_view text) {
    if (!session.quiet) base::write_stderr(text);
  };
  request.progress = [&session](std::string_view line) {
    if (!session.quiet) base::write_stderr("assay: " + base::printable(line) + "\n");
  };
  ASSAY_TRY(const lineage::RefreshReport report, lineage::refresh(store, request));
  const ExitCode code = print_report(session, report, shown);
  if (report.interrupted_by != 0) {
    finish_stdout();
    ::signal(report.interrupted_by, SIG_DFL);
    ::raise(report.interrupted_by);
  }
  return code;
}

}  // namespace

Verb refresh_verb(const Session& session) {
  const auto options = std::make_shared<RefreshOptions>();
  return {
      .name = "refresh",
      .description = "rerun stale stages in dependency order",
      .examples = {"assay refresh --dry-run", "assay refresh model.bin --jobs 4"},
      .arguments = {{"TARGET",
                     "only what these depend on: files, stages (@N), runs or labels",
                     nullptr,
                     false,
                     {},
                     true,
                     &options->targets}},
      .options = {{"-j,--jobs",
                   "how many independent stages to run at the same time; default: 1",
                   &options->jobs,
                   {},
                   "N"},
                  {"--dry-run", "only print what would run", &options->dry_run},
                  {"--overwrite", "also rerun stages whose outputs were changed by hand",
                   &options->overwrite},
                  {"--keep-going", "after a failure, continue with stages that do not depend on it",
                   &options->keep_going}},
      .action = [&session, options] { return refresh(session, *options); }};
}

}  // namespace assay::cli
