// assay-train train: loads the job, opens its data, chooses a device, plans the memory, then runs
// train::train() (src/train/trainer.h) and reports.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <charconv>
#include <filesystem>

#include "assay-train/device.h"
#include "assay-train/plan_record.h"
#include "assay-train/run_report.h"
#include "assay-train/step_metrics.h"
#include "assay-train/summary.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "machine/meter.h"
#include "spec/load.h"
#include "train/job_data.h"
#include "train/trainer.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> stop_requested = false;

void on_signal(int signal) {
  // A second Ctrl-C ends the process at once.
  if (stop_requested.exchange(true) && signal == SIGINT) ::_exit(128 + SIGINT);
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) ::sigaction(signal, &action, nullptr);
  // A terminal that closes; nohup makes the process ignore that.
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

base::Result<std::optional<std::int64_t>> parse_stop(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc{} || end != text.data() + text.size() || step < 1) {
    return base::fail(base::usage_error("train --stop-after",
                                        fmt::format("expected a step from 1 on, got '{}'", text)));
  }
  return step;
}

base::Result<spec::JobSpec> load_job(const TrainOptions& options, std::string& name) {
  ASSAY_TRY(spec::Loaded loaded, spec::load(options.job, {.overrides = options.sets}));
  auto* job = std::get_if<spec::JobSpec>(&loaded.spec);
  if (job == nullptr) {
    return base::fail(base::usage_error(options.job, "is not a job",
                                        "a job has a [model] and a [batch] or [train]"));
  }
  name = loaded.name;
  if (job->layout.ranks.value_or(1) != 1) {
    return base::fail(base::usage_error(options.job, "has more than one rank",
                                        "set layout.ranks=1 and a cluster of one device"));
  }
  return std::move(*job);
}

base::Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::unfit_error(folder, "cannot be created: " + error.message()));
  if (::access(folder.c_str(), W_OK) != 0) {
    return base::fail(
        base::unfit_error(folder, "is not writable", "choose another folder with --out"));
  }
  return {};
}

std::unique_ptr<machine::Meter> meter_of(const Device& device) {
  return device.gpu_bus_id ? machine::gpu_meter(*device.gpu_bus_id) : machine::processor_meter();
}

}  // namespace

base::Result<base::ExitCode> train_model(const Session& session, const TrainOptions& options) {
  std::string name;
  ASSAY_TRY(spec::JobSpec job, load_job(options, name));
  ASSAY_TRY(const auto stop_after, parse_stop(options.stop_after));
  const fs::path out = options.out.empty() ? fs::path("runs") / name : fs::path(options.out);
  // Errors that need no device are found before one is taken.
  ASSAY_TRY_VOID(make_folder(out));
  ASSAY_TRY_VOID(train::check_folder(out, options.resume));
  ASSAY_TRY(const data::TokenSet set, train::open_training_data(job, out));
  ASSAY_TRY(const auto validation, train::open_validation_data(job));
  ASSAY_TRY(Device device, choose_device(options.device, job));
  const data::BatchReader reader(set, static_cast<std::uint64_t>(job.train.seed),
                                 static_cast<std::int32_t>(job.model.vocab));
  ASSAY_TRY(const train::Planned planned,
            train::plan_step(job, step::choices_of(job),
                             train::memory_budget(*device.backend, device.available_bytes)));
  print_plan(session, planned, device);
  ASSAY_TRY_VOID(device.backend->prepare(planned.program, planned.plan));
  install_signal_handlers();
  Telemetry telemetry(*device.backend, meter_of(device));
  ASSAY_TRY(const auto report, RunReport::open(session, job, out, telemetry, stop_after));
  report->planned(plan_record(name, job, planned, device));
  const train::TrainerOptions trainer{.out = out,
                                      .resume = options.resume,
                                      .stop_after = stop_after,
                                      .stop = &stop_requested,
                                      .validation = validation ? &*validation : nullptr};
  ASSAY_TRY(const train::TrainingResult result,
            train::train(job, planned, *device.backend, reader, trainer, *report));
  print_result(session, planned, device, telemetry, report->totals(), result);
  session.next(fmt::format("assay generate {} --prompt \"…\"", result.checkpoint.string()));
  return result.ending == train::Ending::kNotFinite ? base::ExitCode::kNo : base::ExitCode::kYes;
}

}  // namespace assay::cli
