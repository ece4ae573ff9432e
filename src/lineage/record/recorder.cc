#include "lineage/record/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "base/process/proc.h"
#include "lineage/record/context.h"
#include "lineage/record/gpu_work.h"
#include "lineage/record/inherited_stamps.h"
#include "lineage/record/redirects.h"
#include "lineage/record/staged_results.h"
#include "lineage/redact/environment.h"
#include "lineage/track/filter_file.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/process/launch.h"
#include "observe/collect/process/outside_writers.h"
#include "share/region.h"
#include "store/cleaning.h"
#include "store/run_row.h"
#include "store/run_writer.h"
#include "store/this_run.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

fs::path home(const base::Environment& environment) {
  const std::string_view home = environment.get("HOME").value_or("");
  return home.starts_with('/') ? fs::path(home) : fs::path();
}

base::Result<collect::Tracer> choose(const std::optional<collect::Tracer>& wanted) {
  if (wanted) {
    const collect::Preflight preflight = collect::preflight(*wanted);
    if (preflight.available) return *wanted;
    return base::fail(base::unfit_error(std::string(collect::name_of(*wanted)), preflight.reason,
                                        "`assay tracers` tells what works here"));
  }
  std::string reasons;
  for (const collect::Tracer tracer : collect::kTracers) {
    const collect::Preflight preflight = collect::preflight(tracer);
    if (preflight.available) return tracer;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", collect::name_of(tracer),
                           preflight.reason);
  }
  return base::fail(base::unfit_error("no tracer works here", reasons));
}

// As they can be given again.
std::vector<std::string> options_of(const RunRequest& request) {
  std::vector<std::string> options;
  if (request.tracer) {
    options.push_back(fmt::format("--tracer={}", collect::name_of(*request.tracer)));
  }
  for (const Filter::Choice& choice : request.choices) {
    options.push_back((choice.keep ? "--keep=" : "--leave-out=") + choice.pattern);
  }
  for (std::string& option : share::to_arguments(request.gpu_options)) {
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace

int exit_code_of(const base::Error& not_started) {
  return not_started.code == base::ExitCode::kUsage ? base::kExitNotFound : base::kExitNotRunnable;
}

Recorder::Recorder(const RunRequest& request, collect::Channel& channel)
    : request_(request), channel_(channel) {
  launch_.command = request_.words;
  launch_.environment = base::Environment::from_current();
  launch_.inherited = collect::inherited_files();
  launch_.redact = redacted_joined_words;
  descriptors_ = collect::inherited_descriptors();
}

void Recorder::say(const base::Error& error) {
  channel_.print("assay: " + error.line());
}

int Recorder::record() {
  const auto tracer = choose(request_.tracer);
  // Named explicitly, a tracer is a condition; otherwise recording is, like all we do, no reason
  // not to run the command.
  if (!tracer && request_.tracer) {
    say(tracer.error());
    return static_cast<int>(tracer.error().code);
  }
  if (!tracer && collect::under_another_gate()) {
    return run_unrecorded(base::unfit_error(
        "run", "another `assay run` is around this one and records it as its own"));
  }
  if (!tracer) return run_unrecorded(tracer.error());
  if (const auto ready = prepare(*tracer); !ready) {
    give_up();
    return run_unrecorded(ready.error());
  }
  const auto done = run();
  if (done) return 0;
  give_up();
  if (done.error().code == base::ExitCode::kUnfit) return run_unrecorded(done.error());
  say(done.error());
  return exit_code_of(done.error());
}

// The store, the context, the row of a running run.
base::Result<void> Recorder::prepare(collect::Tracer tracer) {
  std::error_code error;
  const fs::path directory = fs::current_path(error);
  if (error) return base::fail(base::unfit_error("the working directory", "is gone"));
  ContextTask context({.directory = directory, .environment = launch_.environment.entries()});
  ASSAY_TRY(store::Store opened, store::Store::open_or_create(directory, store::Program{}));
  store_.emplace(std::move(opened));
  const store::Location& location = store_->location();

  run_.command = redacted_words(request_.words);
  run_.directory = directory;
  run_.redirects = redirects_of(launch_.inherited);
  run_.name = request_.name;
  run_.build = request_.build;
  run_.repeats = request_.stage;
  run_.options = options_of(request_);
  run_.collector_pid = ::getpid();
  if (const auto stat = base::process_stat(::getpid())) {
    run_.collector_start_ticks = stat->start_ticks;
  }
  run_.started_unix_ns = base::system_clock().wall_ns();
  ASSAY_TRY(run_.uid, store::random_uid());
  run_.spool = location.directory / "spool" / run_.uid;
  if (!fs::create_directories(run_.spool, error) || error) {
    return base::fail(base::unfit_error(run_.spool, "cannot be made: " + error.message()));
  }
  Gathered gathered = context.take();
  run_.context = std::move(gathered.context);
  for (std::string& problem : gathered.problems) problems_.push_back({"context", problem});
  run_.tracer = collect::name_of(tracer);
  collector_ = collect::make_collector(tracer, fs::path(run_.spool) / "events");
  ASSAY_TRY_VOID(collector_->prepare());
  ASSAY_TRY(run_.id, store::begin_run(*store_, run_));
  store::set_run_variable({location, run_.uid}, launch_.environment);
  ASSAY_TRY_VOID(prepare_gpu());

  ASSAY_TRY(std::vector<Filter::Choice> choices, read_filter_file(location.project));
  choices.insert(choices.end(), request_.choices.begin(), request_.choices.end());
  filter_.emplace(Filter::Options{
      .root = location.project, .home = home(launch_.environment), .choices = std::move(choices)});
  ASSAY_TRY(StoredDigests digests, StoredDigests::over(*store_));
  digests_ = std::make_unique<StoredDigests>(std::move(digests));
  return {};
}

// Without limits, counting is no reason not to run the command; with them, it runs limited or not
// at all.
base::Result<void> Recorder::prepare_gpu() {
  if (collect::cuda_may_run(launch_.environment)) {
    gpu_ = collect::GpuCount::make(run_.uid, run_.spool);
    if (gpu_ && !gpu_->add_to(launch_.environment)) {
      gpu_->remove();
      gpu_.reset();
    }
  }
  if (request_.gpu_limits.empty()) return {};
  if (gpu_ && share::apply(request_.gpu_limits, gpu_->region())) return {};
  return base::fail(base::unfit_error("GPU limits", "there is no memory to keep them in",
                                      "make room in /dev/shm"));
}

base::Result<void> Recorder::run() {
  take_stamps(launch_.inherited);
  const auto outside = std::make_shared<collect::OutsideWriters>(launch_.inherited);
  started_ns_ = base::system_clock().monotonic_ns();
  Tracker::Options options{.started_ns = started_ns_, .hashing = {.cache = digests_.get()}};
  // While the command still runs, it is itself one of those who have the file open.
  options.written_outside = [this, outside](const wire::Stamp& file) {
    return !abandoned_ && outside->may_have_written(file);
  };
  tracker_ = std::make_unique<Tracker>(options, *filter_);
  collect::Control control;
  control.keeper = channel_.descriptor();
  control.started = [&](pid_t pid, int listener) {
    release_descriptors();
    channel_.started(pid, listener);
  };
  control.ended = [&](int status) {
    wait_status_ = status;
    run_.duration_s = static_cast<double>(base::system_clock().monotonic_ns() - started_ns_) / 1e9;
    channel_.ended(status);
  };
  control.detached = [&] { return detached_ = channel_.detached(); };
  control.abandoned = [&] {
    abandoned_ = true;
    collect::Outcome outcome;
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
  // Killed so late that the collector did not notice: all was seen, but nobody was told the result.
  if (!detached_ && keeper_gone()) status = store::RunStatus::kInterrupted;
  if (auto stored = store(*outcome, status); !stored) {
    // The row still says that the run runs, and the event log is there: recovery will finish it.
    stored.error().hint = "its event log is kept and the next `assay log` tries again";
    say(stored.error());
    return {};
  }
  remove_spool();
  return {};
}

base::Result<void> Recorder::store(const collect::Outcome& outcome, store::RunStatus status) {
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

  ASSAY_TRY(
      StagedResults results,
      StagedResults::in(run_.spool, request_.explain
                                        ? [this](const std::string& line) { channel_.print(line); }
                                        : StagedResults::Explain{}));
  tracker_->finish(results);
  for (const collect::Missed& missed : outcome.missed) results.missed({missed.what, missed.text});
  if (outcome.dropped > 0) {
    results.missed({"dropped", fmt::format("{} events could not be recorded", outcome.dropped)});
  }
  run_.complete = results.complete();
  const store::GpuWork gpu = gpu_ ? gpu_work(gpu_->report(), problems_) : store::GpuWork{};
  // What could not be learnt of the context is said, but the files were all seen.
  for (store::Missed& problem : problems_) results.missed(std::move(problem));

  ASSAY_TRY(store::RunWriter writer, store::RunWriter::begin(*store_, run_.id));
  ASSAY_TRY_VOID(results.write(writer));
  ASSAY_TRY_VOID(digests_->write());
  ASSAY_TRY_VOID(writer.add_gpu(gpu));
  ASSAY_TRY(run_.stage, writer.finish(run_));
  if (request_.summary) {
    channel_.print(fmt::format("assay: run {}: {} inputs, {} outputs, {} ({}); see `assay show {}`",
                               run_.id, results.inputs(), results.outputs(),
                               run_.complete ? "complete" : "NOT complete", run_.tracer, run_.id));
  }
  return {};
}

bool Recorder::keeper_gone() const {
  pollfd keeper{channel_.descriptor(), POLLIN, 0};
  return ::poll(&keeper, 1, 0) > 0 && !channel_.detached();
}

// Nothing ran, so there is nothing to remember. All that was opened is closed again: it may have
// been too much.
void Recorder::give_up() {
  tracker_.reset();
  collector_.reset();
  if (run_.id != 0) {
    run_.status = store::RunStatus::kFailed;  // a running run cannot be removed
    auto writer = store::RunWriter::begin(*store_, run_.id);
    if (writer && writer->finish(run_)) (void)store::remove_run(*store_, run_.id);
  }
  if (!run_.spool.empty()) remove_spool();
  digests_.reset();
  store_.reset();
  launch_.environment = base::Environment::from_current();  // without the run
}

// A pipe must end when the command closes it, so nobody else may hold it.
void Recorder::release_descriptors() {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null.valid()) ::dup2(null.get(), standard);
  }
  for (const int descriptor : descriptors_) ::close(descriptor);
  descriptors_.clear();
}

void Recorder::remove_spool() {
  if (gpu_) gpu_->remove();
  std::error_code ignored;
  fs::remove_all(run_.spool, ignored);
}

// Without a store or a tracer: the command runs as if we were not there, and a line says so.
int Recorder::run_unrecorded(const base::Error& why) {
  base::Error told = why;
  if (!request_.gpu_limits.empty()) {
    // Who asked for limits does not want to run without.
    told.what = "not run, because limits could not be kept: " + told.what;
    say(told);
    return static_cast<int>(base::ExitCode::kUnfit);
  }
  told.what = "this run is not recorded: " + told.what;
  say(told);
  auto child = collect::launch(launch_, [] { return true; });
  std::optional<base::Error> failure;
  if (!child) {
    failure = child.error();
  } else {
    failure = collect::exec_failure(launch_, child->exec_result.get());
  }
  if (failure) {
    if (child) ::waitpid(child->pid, nullptr, 0);
    say(*failure);
    return exit_code_of(*failure);
  }
  release_descriptors();
  channel_.started(child->pid, -1);
  int status = 0;
  while (::waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  channel_.ended(status);
  return 0;
}

}  // namespace assay::lineage
