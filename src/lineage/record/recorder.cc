#include "lineage/record/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "base/process/program.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/archive/archive_names.h"
#include "lineage/record/command_start.h"
#include "lineage/record/context.h"
#include "lineage/record/merge_parts.h"
#include "lineage/record/metrics_file.h"
#include "lineage/record/run_results.h"
#include "lineage/redact/command.h"
#include "observe/collect/event/project_folder.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/launch.h"
#include "observe/collect/process/outside_writers.h"
#include "share/region.h"
#include "store/cleaning.h"
#include "store/run_row.h"
#include "store/run_writer.h"
#include "store/shared_outputs.h"
#include "store/streams.h"
#include "store/this_run.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

fs::path home(const base::Environment& environment) {
  const std::string_view home = environment.get("HOME").value_or("");
  return home.starts_with('/') ? fs::path(home) : fs::path();
}

}  // namespace

Recorder::Recorder(const RunRequest& request, collect::KeeperChannel& channel)
    : request_(request), channel_(channel) {
  launch_.command = request_.command;
  launch_.environment = base::Environment::from_current();
  launch_.inherited = collect::inherited_files();
  launch_.redact = redact_joined_arguments;
  descriptors_ = collect::inherited_descriptors();
}

void Recorder::report(const base::Error& error) {
  channel_.print("assay: " + error.line());
}

int Recorder::record() {
  const auto tracer = collect::choose_tracer(request_.tracer);
  // An explicitly named tracer is required; otherwise a command that cannot be recorded still runs.
  if (!tracer && request_.tracer) {
    report(tracer.error());
    return static_cast<int>(tracer.error().code);
  }
  if (!tracer && collect::under_another_gate()) {
    return run_unrecorded(
        base::unfit_error("run", "it is inside another `assay run`, which records it"));
  }
  if (!tracer) return run_unrecorded(tracer.error());
  if (const auto ready = prepare(*tracer); !ready) {
    discard();
    if (request_.tracer && tracer_failed_) {
      report(ready.error());
      return static_cast<int>(base::ExitCode::kUnfit);
    }
    return run_unrecorded(ready.error());
  }
  const auto done = run();
  if (done) return 0;
  discard();
  if (done.error().code == base::ExitCode::kUnfit) return run_unrecorded(done.error());
  report(done.error());
  return exit_code_of(done.error());
}

// Opens the store, gathers the context, and inserts the row of the running run. In a job, only rank
// 0 uses the store: other ranks may be on nodes that do not have the project's folder.
base::Result<void> Recorder::prepare(collect::Tracer tracer) {
  std::error_code error;
  const fs::path directory = fs::current_path(error);
  if (error) return base::fail(base::unfit_error("the working directory", "is gone"));
  ContextTask context({.directory = directory, .environment = launch_.environment.entries()});
  ASSAY_TRY(const store::Location location, locate(directory));
  project_ = location.project;
  collect::set_project_folder(project_.string());
  ASSAY_TRY(run_, new_run(request_, launch_, directory));
  run_.spool = location.directory / "spool" / run_.uid;
  if (request_.part_of) {
    ASSAY_TRY(job_part_, JobPart::open(*request_.part_of, run_.uid, launch_.environment));
    if (is_part()) run_.spool = job_part_->spool();
  }
  if (!fs::create_directories(run_.spool, error) || error) {
    return base::fail(base::unfit_error(run_.spool, "cannot be created: " + error.message()));
  }
  if (job_part_ && !is_part()) ASSAY_TRY_VOID(job_part_->begin_run(run_.spool));
  run_.tracer = collect::name_of(tracer);
  collector_ = collect::make_collector(tracer, fs::path(run_.spool) / "events");
  if (auto loaded = collector_->load(); !loaded) {
    tracer_failed_ = true;
    return loaded;
  }
  ASSAY_TRY_VOID(collector_->prepare());
  GatheredContext gathered = context.take();
  run_.context = std::move(gathered.context);
  for (std::string& problem : gathered.problems) problems_.push_back({"context", problem});
  if (!is_part()) {
    ASSAY_TRY(run_.id, store::begin_run(*store_, run_));
    ASSAY_TRY(overlapping_, store::overlapping_runs(*store_, run_.id));
    store::set_run_variable({location, run_.uid}, launch_.environment);
    offer_metrics_file(run_.spool, launch_.environment);
  }
  ASSAY_TRY_VOID(prepare_gpu());

  ASSAY_TRY(std::vector<Filter::UserRule> user_rules, read_filter_file(location.project));
  user_rules.insert(user_rules.end(), request_.user_rules.begin(), request_.user_rules.end());
  filter_.emplace(Filter::Options{.root = location.project,
                                  .home = home(launch_.environment),
                                  .user_rules = std::move(user_rules)});
  if (!store_) return {};
  ASSAY_TRY(StoredDigests digests, StoredDigests::open(*store_));
  digests_ = std::make_unique<StoredDigests>(std::move(digests));
  return {};
}

// Where the project is; with its store open, unless this is a part of another process's run.
base::Result<store::Location> Recorder::locate(const fs::path& directory) {
  if (is_part()) {
    ASSAY_TRY(const std::optional<store::Location> found, store::find(directory));
    return found ? *found : store::default_location(directory);
  }
  ASSAY_TRY(store::Store opened, store::Store::open_or_create(directory, store::StoreProgram{}));
  store_.emplace(std::move(opened));
  return store_->location();
}

// Counting GPU work is optional; with limits, the command runs limited or not at all.
base::Result<void> Recorder::prepare_gpu() {
  if (collect::cuda_may_run(launch_.environment)) {
    gpu_ = collect::GpuCounters::make(run_.uid, run_.spool);
    if (gpu_ && !gpu_->add_to(launch_.environment)) {
      gpu_->remove();
      gpu_.reset();
    }
  }
  if (request_.gpu_limits.empty()) return {};
  if (gpu_ && share::apply(request_.gpu_limits, gpu_->region())) return {};
  return base::fail(base::unfit_error("GPU limits", "no shared memory is left for them",
                                      "free space in /dev/shm"));
}

base::Result<void> Recorder::run() {
  refresh_stamps(launch_.inherited);
  const auto outside = std::make_shared<collect::OutsideWriters>(launch_.inherited);
  input_ = collect::InputStream::watch(STDIN_FILENO);
  started_ns_ = base::system_clock().monotonic_ns();
  started_file_ns_ = file_system_clock_ns(run_.spool);
  Tracker::Options options{.started_ns = started_ns_,
                           .started_file_ns = started_file_ns_,
                           .directory = run_.directory,
                           .project = project_.string(),
                           .hashing = {.cache = digests_.get()}};
  // While the command still runs, it holds the file open itself, so the answer would be wrong.
  options.written_outside = [this, outside](const wire::Stamp& file) {
    return !abandoned_ && outside->may_have_written(file);
  };
  tracker_ = std::make_unique<Tracker>(options, *filter_);
  collect::CollectorCallbacks control;
  control.keeper = channel_.descriptor();
  control.started = [&](pid_t pid, int listener) {
    release_descriptors(descriptors_);
    channel_.started(pid, listener);
    command_ = pid;
    if (keeper_killed_) ::kill(command_, SIGTERM);
  };
  control.ended = [&](int status) {
    wait_status_ = status;
    run_.duration_s = static_cast<double>(base::system_clock().monotonic_ns() - started_ns_) / 1e9;
    channel_.ended(status);
  };
  control.detached = [&] { return (detached_ = channel_.detached()) || stop_after_keeper(); };
  control.abandoned = [&] {
    abandoned_ = true;
    collect::CollectorResult outcome;
    outcome.missed.push_back({"killed",
                              "`assay run` was killed; what the command did after that "
                              "was not recorded"});
    if (!store(outcome, store::RunStatus::kInterrupted)) return;
    remove_spool();
  };
  const auto outcome = collector_->run(launch_, control, *tracker_);
  if (abandoned_) return {};
  if (!outcome) return base::fail(outcome.error());
  store::RunStatus status =
      outcome->wait_status == 0 ? store::RunStatus::kDone : store::RunStatus::kFailed;
  // The keeper was killed at the very end: everything was recorded, but no exit code was returned.
  if (!detached_ && keeper_gone()) status = store::RunStatus::kInterrupted;
  if (auto stored = store(*outcome, status); !stored) {
    // The row is still that of a running run, and the event log exists: recovery will finish it.
    if (!is_part()) {
      stored.error().hint = "not recorded yet: its event log is kept; the next `assay log` retries";
      report(stored.error());
      return {};
    }
    stored.error().what = "what this rank did is not recorded: " + stored.error().what;
    report(stored.error());
  }
  remove_spool();
  return {};
}

// The keeper was killed: whether the command is recorded to its end, for which it is asked.
bool Recorder::stop_after_keeper() {
  if (!request_.stops_when_killed) return false;
  keeper_killed_ = true;
  if (command_ > 0 && !wait_status_) ::kill(command_, SIGTERM);
  return true;
}

void Recorder::finish_tracking(const collect::CollectorResult& outcome, Results& results) {
  tracker_->finish(results);
  for (const collect::ObservationGap& missed : outcome.missed)
    results.missed({missed.what, missed.text});
  switch (input_.state()) {
    case collect::InputStream::State::kNotRead:
      break;
    case collect::InputStream::State::kRead:
      results.missed(store::missed_stdin());
      break;
    case collect::InputStream::State::kUnknown:
      results.missed(store::unknown_stdin());
      break;
  }
  if (outcome.dropped > 0) {
    results.missed({"dropped", fmt::format("{} events could not be recorded", outcome.dropped)});
  }
}

Part Recorder::own_part(const collect::CollectorResult& outcome) {
  Part part;
  part.rank = request_.part_of->rank;
  part.host = base::host_name();
  part.started_unix_ns = run_.started_unix_ns;
  part.wait_status = wait_status_;
  part.dropped = static_cast<std::int64_t>(outcome.dropped);
  part.usage = usage_of(outcome.usage);
  finish_tracking(outcome, part);
  if (gpu_) part.gpu = stored_gpu_work(gpu_->report(), problems_);
  part.problems = problems_;
  return part;
}

// Rank 0: what all ranks did.
void Recorder::store_parts(const collect::CollectorResult& outcome, StagedResults& results,
                           store::GpuWork& gpu) {
  PartTimeouts timeouts;
  // The keeper was killed while the command runs; the command must not wait for the other ranks'
  // parts.
  if (abandoned_) timeouts.first_heartbeat = timeouts.heartbeat = std::chrono::milliseconds(0);
  Part whole = job_part_->merge(
      own_part(outcome), timeouts,
      [&](const std::string& line) { channel_.print("assay: " + line); }, run_);
  run_.dropped = whole.dropped;
  run_.usage = whole.usage;
  gpu = std::move(whole.gpu);
  const auto problems = std::move(whole.problems);
  replay(std::move(whole), results);
  run_.complete = results.complete();
  for (const store::Missed& problem : problems) results.missed(problem);
}

base::Result<void> Recorder::store(const collect::CollectorResult& outcome,
                                   store::RunStatus status) {
  if (is_part()) return job_part_->hand_over([&] { return own_part(outcome); });
  if (run_.duration_s == 0) {
    run_.duration_s = static_cast<double>(base::system_clock().monotonic_ns() - started_ns_) / 1e9;
  }
  run_.status = status;
  if (wait_status_) {
    run_.exit_code = base::shell_exit_code(*wait_status_);
    run_.signal = base::signal_of(*wait_status_);
  }
  run_.dropped = static_cast<std::int64_t>(outcome.dropped);
  run_.usage = usage_of(outcome.usage);
  run_.context.machine = machine_facts(store_->location().directory);

  ASSAY_TRY(StagedResults results, StagedResults::create(run_.spool, request_.explain));
  std::set<std::string> expected = store::stream_paths(run_);
  expected.insert(base::own_program());
  results.expect(std::move(expected));
  store::GpuWork gpu;
  if (job_part_) {
    store_parts(outcome, results, gpu);
  } else {
    finish_tracking(outcome, results);
    run_.complete = results.complete();
    if (gpu_) gpu = stored_gpu_work(gpu_->report(), problems_);
    // Problems with the context are recorded, but do not make the run incomplete.
    for (store::Missed& problem : problems_) results.missed(std::move(problem));
  }

  if (was_misused(results)) {
    discard();
    return {};
  }
  results.note_began(store_->location().project.string(), started_file_ns_);
  results.find_created_folders(started_file_ns_);
  results.note_absent(request_.absent);
  results.find_interpreters(std::string(launch_.environment.get("PATH").value_or("")),
                            run_.directory, std::max(started_file_ns_, run_.started_unix_ns));
  ASSAY_TRY(store::RunWriter writer, store::RunWriter::begin(*store_, run_.id));
  ASSAY_TRY_VOID(results.write(writer));
  ASSAY_TRY_VOID(writer.note_shared_outputs(run_, overlapping_));
  ASSAY_TRY_VOID(digests_->write());
  ASSAY_TRY_VOID(writer.add_gpu(gpu));
  ASSAY_TRY(run_.stage, writer.finish(run_));
  if (const std::string problem = store_metrics_file(*store_, run_); !problem.empty()) {
    report(base::failed_error("metrics", problem));
  }
  results.explain([this](const std::string& line) { channel_.print(line); });
  // Only now, because recovery would have needed the parts.
  if (job_part_) job_part_->end();
  const std::string summary = summary_text(request_.summary, run_, results.inputs(),
                                           writer.outputs(), results.used_network());
  if (!summary.empty()) channel_.print(summary);
  if (request_.archive) archive_outputs();
  return {};
}

// A verb of this program that had a wrong argument. Bad input ends with the same code, but only
// after it was read.
bool Recorder::was_misused(const StagedResults& results) const {
  return request_.drop_misuse && !abandoned_ && !results.has_others() &&
         run_.exit_code == static_cast<int>(base::ExitCode::kUsage);
}

// The run is already stored; a failure to archive its outputs does not change that.
void Recorder::archive_outputs() {
  const auto kept = [&]() -> base::Result<std::string> {
    ASSAY_TRY(const auto contents, contents_of(*store_, run_.id, false));
    ASSAY_TRY(const ArchiveReport report, archive_contents(*store_, contents));
    ASSAY_TRY(const ArchiveUse use, Archive(store_->location()).use());
    std::string text = cost_text(report, use);
    if (!report.missing.empty()) {
      text += fmt::format("; {} changed before it could be kept, first {}",
                          base::counted(static_cast<std::int64_t>(report.missing.size()), "file"),
                          report.missing.front().path);
    }
    return text;
  }();
  if (!kept) {
    base::Error why = kept.error();
    why.what = "nothing was archived: " + why.what;
    report(why);
  } else if (request_.archive_note) {
    channel_.print("assay: " + base::printable(*kept));
  }
}

bool Recorder::keeper_gone() const {
  pollfd keeper{channel_.descriptor(), POLLIN, 0};
  return ::poll(&keeper, 1, 0) > 0 && !channel_.detached();
}

// Nothing ran, so the run is removed. Everything is closed: too many open files may be the reason.
void Recorder::discard() {
  tracker_.reset();
  collector_.reset();
  if (run_.id != 0) {
    run_.status = store::RunStatus::kFailed;  // a running run cannot be removed
    auto writer = store::RunWriter::begin(*store_, run_.id);
    if (writer && writer->finish(run_)) (void)store::remove_run(*store_, run_.id);
  }
  if (!run_.spool.empty()) remove_spool();
  if (job_part_ && !is_part()) job_part_->end();
  job_part_.reset();
  digests_.reset();
  store_.reset();
  launch_.environment = base::Environment::from_current();  // without the variables of the run
}

void Recorder::remove_spool() {
  if (gpu_) gpu_->remove();
  std::error_code ignored;
  fs::remove_all(run_.spool, ignored);
  if (job_part_ && is_part()) job_part_->end();
}

// Without a store or a tracer, the command runs unrecorded, and a line says so.
int Recorder::run_unrecorded(const base::Error& why) {
  base::Error message = why;
  if (!request_.gpu_limits.empty()) {
    message.what = "not run, because GPU limits could not be enforced: " + message.what;
    report(message);
    return static_cast<int>(base::ExitCode::kUnfit);
  }
  message.what = "this run is not recorded: " + message.what;
  report(message);
  // Tells the recorded ranks, through this rank's program, that nobody will collect their parts.
  store::set_joined_run({}, launch_.environment);
  const auto ran = run_unobserved(launch_, channel_, [&] { release_descriptors(descriptors_); });
  if (request_.part_of && !is_part()) PartFolder::remove(*request_.part_of);
  if (ran) return 0;
  report(ran.error());
  return exit_code_of(ran.error());
}

}  // namespace assay::lineage
