// Two processes: this one, the keeper, stays in the foreground; the forked one, the collector,
// starts the command and records it (recorder.h). If the collector is killed, the run is recovered
// from its event log.
#include "lineage/record/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/proc.h"
#include "base/terminal.h"
#include "base/units.h"
#include "lineage/record/command_start.h"
#include "lineage/record/recorder.h"
#include "lineage/record/recovery.h"
#include "lineage/redact/command.h"
#include "store/run_row.h"
#include "store/store.h"

namespace assay::lineage {
namespace {

// The collector was killed and the command ended without it: recovers the run from its event log.
void recover_killed(const collect::KeeperResult& result) {
  std::error_code error;
  const auto directory = std::filesystem::current_path(error);
  if (error) return;
  const auto location = store::find(directory);
  if (!location || !*location) return;
  auto store = store::Store::open(**location, store::StoreProgram{});
  std::optional<EndedRun> ended;
  if (result.wait_status) ended = {result.collector, *result.wait_status};
  if (store && recover_runs(*store, ended)) {
    base::write_stderr(
        "assay: the collector was killed; what it had recorded is kept as an interrupted run, see "
        "`assay show last`\n");
  }
}

// Whether lines that are not about an error follow the command's own.
bool prints_lines(const RunRequest& request) {
  return request.explain || request.summary != SummaryFormat::kNone ||
         (request.archive && request.archive_note);
}

}  // namespace

std::vector<std::string> repeatable_options(const RunRequest& request) {
  std::vector<std::string> options;
  if (request.tracer) {
    options.push_back(fmt::format("--tracer={}", collect::name_of(*request.tracer)));
  }
  for (const Filter::UserRule& rule : request.user_rules) {
    options.push_back((rule.keep ? "--keep=" : "--leave-out=") + rule.pattern);
  }
  if (request.archive) options.emplace_back("--archive");
  if (request.about_runs) options.emplace_back(store::kAboutRuns);
  for (std::string& option : share::to_arguments(request.gpu_options)) {
    options.push_back(std::move(option));
  }
  return options;
}

void repeat_option(const std::string& option, RunRequest& request) {
  if (share::parse_option(option, request.gpu_options)) return;
  if (option == "--archive") request.archive = true;
  const std::size_t equals = option.find('=');
  if (equals == std::string::npos) return;
  const std::string_view name = std::string_view(option).substr(0, equals);
  const std::string value = option.substr(equals + 1);
  if (name == "--keep" || name == "--leave-out") {
    request.user_rules.push_back({value, name == "--keep"});
  }
  for (const collect::Tracer tracer : collect::kTracers) {
    if (name == "--tracer" && value == collect::name_of(tracer)) request.tracer = tracer;
  }
}

base::Result<store::RunRecord> new_run(const RunRequest& request, const collect::Launch& launch,
                                       const std::filesystem::path& directory) {
  store::RunRecord run;
  run.command = redact_arguments(request.command);
  run.directory = directory;
  run.redirects = inherited_redirects(
      launch.inherited,
      {.starter = request.starter, .assay = prints_lines(request), .repeated = request.redirects});
  run.name = request.name;
  run.build = request.build;
  run.repeats = request.stage;
  run.options = repeatable_options(request);
  run.collector_pid = ::getpid();
  if (const auto stat = base::process_stat(::getpid())) {
    run.collector_start_ticks = stat->start_ticks;
  }
  run.started_unix_ns = base::system_clock().wall_ns();
  ASSAY_TRY(run.uid, store::random_uid());
  return run;
}

std::string summary_text(SummaryFormat summary, const store::RunRecord& run, std::int64_t inputs,
                         std::int64_t outputs, bool used_network) {
  if (summary == SummaryFormat::kJson) {
    return base::Json{{"run", run.id},
                      {"uid", run.uid},
                      {"status", store::name_of(run.status)},
                      {"exit_code", base::or_null(run.exit_code)},
                      {"signal", base::or_null(run.signal)},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"complete", run.complete},
                      {"network", used_network},
                      {"tracer", run.tracer}}
        .dump();
  }
  if (summary == SummaryFormat::kNone) return {};
  return fmt::format("assay: run {}: {}, {}, {} ({}){}; see `assay show {}`", run.id,
                     base::counted(inputs, "input"), base::counted(outputs, "output"),
                     run.complete ? "complete" : "NOT complete", run.tracer,
                     used_network ? ", except data from the network" : "", run.id);
}

base::Result<collect::KeeperResult> run_command(const RunRequest& given, StageStreams streams) {
  RunRequest request = given;
  request.starter = ::getppid();
  auto result = collect::run_under_keeper(request.wait, [&](collect::KeeperChannel& channel) {
    streams.use();
    // Never destroyed: closing the store would checkpoint its write-ahead log and wait for the
    // disk.
    return (new Recorder(request, channel))->record();
  });
  if (!result) {
    base::Error why = result.error();
    if (!request.gpu_limits.empty()) {
      why.what = "not run, because GPU limits could not be enforced: " + why.what;
      return base::fail(std::move(why));
    }
    // The collector cannot be started. The command still can.
    why.what = "this run is not recorded: " + why.what;
    base::write_stderr("assay: " + why.line() + "\n");
    streams.use();
    const base::Error failed = collect::replace_with_command(request.command);
    base::write_stderr("assay: " + failed.line() + "\n");
    return collect::KeeperResult{.collector_status = exit_code_of(failed)};
  }
  // In a job, rank 0 reports that this part is missing.
  const bool is_part = request.part_of && request.part_of->rank > 0;
  if (result->collector_lost && !is_part) recover_killed(*result);
  return result;
}

}  // namespace assay::lineage
