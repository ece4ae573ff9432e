// assay-train train: loads the job, opens its data, chooses a device, plans the memory, then runs
// train::train() (src/train/trainer.h) and reports.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "assay-train/device.h"
#include "assay-train/launch.h"
#include "assay-train/live_line.h"
#include "assay-train/membership.h"
#include "assay-train/rank_metrics.h"
#include "assay-train/run_report.h"
#include "assay-train/step_metrics.h"
#include "assay-train/stop_requests.h"
#include "assay-train/summary.h"
#include "assay-train/training_job.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "machine/meter.h"
#include "step/rules.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder_name.h"
#include "train/job_data.h"
#include "train/resume.h"
#include "train/run_folder.h"
#include "train/snapshot.h"
#include "train/trainer.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

base::Result<std::optional<std::int64_t>> parse_stop(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return number_option<std::int64_t>("train --stop-after", text, 1);
}

train::StartFrom start_of(const TrainOptions& options) {
  if (options.resume_or_start) return train::StartFrom::kEither;
  return options.resume ? train::StartFrom::kCheckpoint : train::StartFrom::kStepOne;
}

std::unique_ptr<machine::Meter> meter_of(const TrainingDevice& device) {
  return device.gpu_bus_id ? machine::gpu_meter(*device.gpu_bus_id) : machine::processor_meter();
}

// Rank 0 reports; the other ranks write to their logs.
class RankLog : public train::Reporter {
 public:
  explicit RankLog(int rank) : rank_(rank) {}
  void began(std::int64_t first_step, std::int64_t steps) override {
    note(fmt::format("begins with step {} of {}", first_step, steps));
  }
  void stepped(const train::StepReport& report) override {
    note(fmt::format("step {}: loss {:.4f}, {:.3f} s", report.step, report.loss, report.seconds));
  }
  void validated(const train::ValidationReport&) override {}
  void saved(const fs::path& folder, std::int64_t) override { note("saved " + folder.string()); }
  void note(const std::string& line) override { fmt::print("rank {}: {}\n", rank_, line); }

 private:
  int rank_;
};

struct Prepared : TrainingJob {
  std::optional<std::int64_t> stop_after;
  train::StartUp startup;
};

// Algorithms that the run has already used need not be timed again. This only guesses the
// checkpoint; train() adopts those of the one it really resumes.
base::Result<void> adopt_newest_algorithms(train::Backend& backend, const fs::path& out) {
  const auto newest = checkpoint::open_newest(out);
  if (!newest) return {};
  return backend.adopt(train::saved_algorithms(*newest)).transform([](const auto&) {});
}

// Closing a GPU first completes its queued work, which may wait for other ranks.
class GpuStopGuard {
 public:
  explicit GpuStopGuard(Membership* member) : member_(member) {}
  ~GpuStopGuard() {
    if (member_ != nullptr) member_->stop_gpus();
  }
  GpuStopGuard(const GpuStopGuard&) = delete;
  GpuStopGuard& operator=(const GpuStopGuard&) = delete;
  void dismiss() { member_ = nullptr; }

 private:
  Membership* member_;
};

// All ranks must use GPUs, or none: ranks without one could not take part in NCCL's calls.
base::Result<bool> all_are_for_gpus(bool own, Membership& member) {
  comm::Communicator& world = member.world();
  const std::uint8_t mine = own ? 1 : 0;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(world.ranks()));
  ASSAY_TRY_VOID(world.all_gather(&mine, all.data(), 1, comm::ElementType::kU8));
  const auto other = std::ranges::find(all, static_cast<std::uint8_t>(1 - mine));
  if (other == all.end()) return own;
  const auto rank = other - all.begin();
  return base::fail(
      base::unfit_error(fmt::format("rank {}", own ? rank : world.rank()),
                        fmt::format("sees no GPU, but rank {} does", own ? world.rank() : rank),
                        "start every rank with a GPU, or all of them with --device cpu"));
}

// Chooses the rank's GPU, if the ranks are on GPUs, and creates its communication groups.
base::Result<std::unique_ptr<train::RankGroups>> connect(const std::string& device,
                                                         const spec::JobSpec& job,
                                                         const step::Layout& layout,
                                                         Membership& member, RankResources& share) {
  comm::Communicator* data = &member.world();
  share.local_ranks = member.assignment().local_ranks;
  ASSAY_TRY(const bool on_gpus, all_are_for_gpus(is_for_gpus(device, job), member));
  if (on_gpus) {
    ASSAY_TRY(const GpuOfRank gpu, gpu_of(member.assignment()));
    share.gpu = gpu.index;
    share.gpu_ranks = gpu.ranks;
    ASSAY_TRY(data, member.connect_gpus(gpu.index));
  }
  ASSAY_TRY(auto groups, train::RankGroups::make(*data, layout));
  share.groups = groups.get();
  return groups;
}

// GPUs choose algorithms by timing, but all ranks should choose the same ones, to compute the same
// bits: one rank of each stage goes first, stage after stage, and the others adopt what these have
// found.
base::Result<void> prepare_in_turn(TrainingDevice& device, const train::ExecutableStep& planned,
                                   comm::Communicator& world) {
  const step::Layout& layout = planned.program.choices.layout;
  const step::AxisPosition stage = layout.pipeline;
  const bool leads = layout.rank() % (layout.ranks() / stage.ranks) == 0;
  for (std::int64_t turn = 0; turn <= stage.ranks; ++turn) {
    if (turn == (leads ? stage.rank : stage.ranks)) {
      ASSAY_TRY_VOID(device.backend->prepare(planned.program, planned.plan));
    }
    ASSAY_TRY(const std::string found, train::all_algorithms(world, device.backend->algorithms()));
    // On another GPU model they are ignored here; that is reported when a checkpoint contains them.
    ASSAY_TRY_VOID(device.backend->adopt(found));
  }
  return {};
}

// Whether the run begins at step 1, ignoring anything computed before.
bool starts_from_scratch(const TrainOptions& options, const fs::path& out) {
  if (start_of(options) == train::StartFrom::kStepOne) return true;
  std::error_code ignored;
  const auto steps = checkpoint::steps_in(out / "checkpoints");
  return steps ? steps->empty() : !fs::exists(out / "checkpoints", ignored);
}

// Why the run is not a success, though every step was computed.
std::string useless_text(const train::TrainingResult& result) {
  std::string text =
      result.skipped == 1
          ? fmt::format("step {} was skipped, because its gradients were not finite", result.step)
          : fmt::format(
                "{} steps in a row, up to step {}, were skipped, because their gradients "
                "were not finite",
                result.skipped, result.step);
  text += result.checkpoint.empty()
              ? "; there is no good checkpoint"
              : fmt::format("; the last good checkpoint is {}", result.checkpoint.string());
  if (result.has_useless)
    text += " (move newer ones away before --resume: their loss is not finite)";
  return "train: " + text + "; try a lower train.learning_rate";
}

// Runs one rank of a job with several, or the only one.
base::Result<base::ExitCode> train_rank(const Session& session, const TrainOptions& options,
                                        Prepared& prepared, Membership* member) {
  spec::JobSpec& job = prepared.job;
  train::StartUp& startup = prepared.startup;
  startup.begin("data", "opening the data");
  const int rank = member == nullptr ? 0 : member->assignment().rank;
  // The built-in text is written by one rank, before the others open it.
  if (rank > 0) ASSAY_TRY_VOID(member->world().barrier());
  const bool writes_text = rank == 0 && starts_from_scratch(options, prepared.out);
  ASSAY_TRY(const train::TrainingData data,
            train::open_training_data(
                job, prepared.out,
                writes_text ? train::BuiltinText::kRewrite : train::BuiltinText::kKeep));
  if (member != nullptr && rank == 0) ASSAY_TRY_VOID(member->world().barrier());
  ASSAY_TRY(const auto validation, train::open_validation_data(job));
  step::Choices choices = step::choices_of(job);
  ASSAY_TRY(choices.layout, step::layout_of(job.layout, rank));
  std::unique_ptr<train::RankGroups> groups;
  RankResources share;
  startup.begin("device", "opening the device");
  if (member != nullptr) {
    ASSAY_TRY(groups, connect(options.device, job, choices.layout, *member, share));
  }
  ASSAY_TRY(TrainingDevice device, choose_device(options.device, job, share));
  GpuStopGuard stops(member);
  device.backend->report_startup_to(&startup);
  startup.begin("plan", "planning the memory");
  choices.numerics = step::numerics_of(job.train.precision);
  if (member != nullptr) {
    // The minimum over all ranks, so that all choose the same recomputation, on which their
    // communication depends.
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(member->assignment().ranks));
    ASSAY_TRY_VOID(member->world().all_gather(&device.available_bytes, bytes.data(),
                                              sizeof(std::int64_t), comm::ElementType::kU8));
    device.available_bytes = std::ranges::min(bytes);
  }
  ASSAY_TRY(const train::ExecutableStep planned,
            train::plan_step(job, choices,
                             train::memory_budget(*device.backend, device.available_bytes)));
  const data::BatchReader reader(data.mix(static_cast<std::uint64_t>(job.train.seed)),
                                 static_cast<std::int32_t>(job.model.vocab),
                                 train::mask_of(planned.program));
  clear_start_line();
  if (rank == 0) print_plan(session, planned, device);
  if (start_of(options) != train::StartFrom::kStepOne) {
    ASSAY_TRY_VOID(adopt_newest_algorithms(*device.backend, prepared.out));
  }
  if (member != nullptr && device.gpu_bus_id) {
    ASSAY_TRY_VOID(prepare_in_turn(device, planned, member->world()));
  } else {
    ASSAY_TRY_VOID(device.backend->prepare(planned.program, planned.plan));
  }
  device.backend->report_startup_to(nullptr);
  startup.begin("report", "opening the report");
  RankTable ranks;
  std::optional<RankTelemetry> meter;
  if (member != nullptr) {
    ASSAY_TRY(ranks, RankTable::gather(*member, job, planned.plan.bytes + planned.extra_bytes));
    meter.emplace(*device.backend, *groups);
  }
  StopRequests stop_requests(rank == 0);
  const train::TrainerOptions trainer{
      .out = prepared.out,
      .resume = start_of(options) != train::StartFrom::kStepOne,
      .new_data = options.new_data,
      .new_optimizer = options.new_optimizer,
      .from = options.from,
      .stop_after = prepared.stop_after,
      .stop = &stop_requests.requested(),
      .validation = validation ? &*validation : nullptr,
      .ranks = member == nullptr ? nullptr : &member->world(),
      .meter = meter ? &*meter : nullptr,
      .threads = threads_of(member == nullptr ? 1 : member->assignment().local_ranks),
      .startup = &startup,
      .begins = [&, member](train::Doing doing, std::int64_t step) {
        stop_requests.begins(doing, step);
        if (member != nullptr && doing == train::Doing::kStep) member->step_begins(step);
      }};
  const auto train_with = [&](train::Reporter& reporter) {
    return train::train(job, planned, *device.backend, reader, trainer, reporter);
  };
  const auto code_of = [](const train::TrainingResult& result) {
    return result.ending == train::Ending::kNotFinite ? base::ExitCode::kNo : base::ExitCode::kYes;
  };
  if (rank > 0) {
    RankLog log(rank);
    ASSAY_TRY(const train::TrainingResult result, train_with(log));
    stops.dismiss();
    groups.reset();
    ASSAY_TRY_VOID(member->leave());
    return code_of(result);
  }
  Telemetry telemetry(*device.backend, meter_of(device));
  ASSAY_TRY(const auto report,
            RunReport::open(session, job, prepared.out, telemetry, prepared.stop_after));
  if (start_of(options) == train::StartFrom::kStepOne) ASSAY_TRY_VOID(report->keep_older_metrics());
  report->planned(plan_record(prepared.name, job, planned, device));
  report->keep(std::move(ranks));
  if (!device.note.empty()) report->note(device.note);
  if (!device.gpu_bus_id && job.cluster.device.kind != spec::DeviceKind::kCpu) {
    report->on_another_device();
  }
  ASSAY_TRY(const train::TrainingResult result, train_with(*report));
  stops.dismiss();
  groups.reset();
  if (member != nullptr) ASSAY_TRY_VOID(member->leave());
  print_result(session, planned, device, telemetry, *report, result);
  if (result.ending == train::Ending::kNotFinite) {
    report->note(useless_text(result));
    return base::ExitCode::kNo;
  }
  session.next(fmt::format("assay generate {} --prompt \"…\"",
                           base::path_argument(result.checkpoint.string())));
  return code_of(result);
}

// Other launchers interleave the output of ranks; this writes each rank's to its own log, as ours
// does.
base::Result<void> print_to_log(const fs::path& out, int rank) {
  const fs::path folder = out / "ranks";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::unfit_error(folder, "cannot be created: " + error.message()));
  const std::string log = folder / fmt::format("rank-{}.log", rank);
  if (std::freopen(log.c_str(), "a", stdout) == nullptr) {
    return base::fail(base::unfit_error(log, "cannot be written"));
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return {};
}

// What a rank does before it joins the others. Errors that need no device are found before one is
// opened; only rank 0, which then holds the lock, checks the run's folder.
base::Result<void> prepare_rank(const TrainOptions& options,
                                const control::RankAssignment& assignment, const fs::path& out,
                                train::RunFolder& folder) {
  if (assignment.rank == 0) return folder.take(start_of(options), true);
  if (assignment.source == control::LauncherKind::kAssay) return {};
  return print_to_log(out, assignment.rank);
}

base::Result<base::ExitCode> join_and_train(const Session& session, const TrainOptions& options,
                                            Prepared& prepared,
                                            const control::RankAssignment& assignment) {
  // Must exist until the others have learned of a failure, because they do so through it.
  ASSAY_TRY(train::RunFolder folder, train::RunFolder::make(prepared.out));
  if (auto ready = prepare_rank(options, assignment, prepared.out, folder); !ready) {
    announce_failure(assignment, prepared.out, ready.error());
    return base::fail(std::move(ready).error());
  }
  const auto run = [&]() -> base::Result<base::ExitCode> {
    ASSAY_TRY(const auto member, Membership::join(assignment, prepared.out));
    auto done = train_rank(session, options, prepared, member.get());
    if (!done) member->fail(done.error());
    return done;
  };
  auto done = run();
  if (done || assignment.rank != 0 || !send_error_to_launcher(done.error())) return done;
  return done.error().code;
}

// Refuses a layout that cannot be executed before any rank is started.
base::Result<void> check_executable(const spec::JobSpec& job) {
  step::Choices choices = step::choices_of(job);
  ASSAY_TRY(choices.layout, step::layout_of(job.layout, 0));
  return step::check(job.model, choices);
}

base::Result<base::ExitCode> train_job(const Session& session, const TrainOptions& options) {
  outlive_reader_of_stdout(
      "assay: standard output was closed; training continues without printing");
  Prepared prepared{.startup = begin_start(session)};
  prepared.startup.begin("job", "reading the job");
  ASSAY_TRY(static_cast<TrainingJob&>(prepared), load_training_job(options));
  ASSAY_TRY(prepared.stop_after, parse_stop(options.stop_after));
  const std::optional<std::int64_t> steps = spec::training_steps(prepared.job);
  if (steps && prepared.stop_after.value_or(0) > *steps) {
    return base::fail(base::usage_error(
        "train --stop-after", fmt::format("'{}' is after the last step", options.stop_after),
        fmt::format("the job has {}", base::counted(*steps, "step"))));
  }
  ASSAY_TRY_VOID(check_device(options.device, prepared.job));
  const std::int64_t ranks = prepared.ranks();
  ASSAY_TRY(const std::optional<control::RankAssignment> assignment, launcher_assignment(prepared));
  if (assignment && assignment->source == control::LauncherKind::kAssay) {
    // Without the launcher, nothing would end the ranks together.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
  if (assignment) return join_and_train(session, options, prepared, *assignment);
  // With several ranks, rank 0 takes the lock.
  ASSAY_TRY(train::RunFolder folder, train::RunFolder::make(prepared.out));
  ASSAY_TRY_VOID(folder.take(start_of(options), ranks == 1));
  if (ranks == 1) return train_rank(session, options, prepared, nullptr);
  ASSAY_TRY_VOID(check_executable(prepared.job));
  if (is_for_gpus(options.device, prepared.job)) {
    ASSAY_TRY_VOID(check_gpus(prepared.job.layout));
  }
  LaunchOptions launch{.ranks = static_cast<int>(ranks),
                       .arguments = {"assay-train", "train"},
                       .out = prepared.out,
                       .append_logs = start_of(options) != train::StartFrom::kStepOne};
  for (std::string& argument : options.arguments()) {
    launch.arguments.push_back(std::move(argument));
  }
  if (session.json) launch.arguments.emplace_back("--json");
  if (session.quiet) launch.arguments.emplace_back("--quiet");
  ASSAY_TRY(LaunchEnd end, launch_ranks(launch));
  if (end.log_is_named) folder.keep();
  if (end.error) return base::fail(*std::move(end.error));
  return static_cast<base::ExitCode>(end.code);  // rank 0's exit code
}

}  // namespace

base::Result<base::ExitCode> train_model(const Session& session, const TrainOptions& options) {
  auto done = train_job(session, options);
  clear_start_line();
  return done;
}

}  // namespace assay::cli
