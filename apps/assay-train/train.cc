// assay-train train: the job, its data, a device, a plan; then the trainer.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <charconv>
#include <filesystem>

#include "assay-train/device.h"
#include "assay-train/plan_record.h"
#include "assay-train/plan_text.h"
#include "assay-train/report.h"
#include "assay-train/telemetry.h"
#include "assay-train/training_data.h"
#include "assay-train/verbs.h"
#include "base/error.h"
#include "machine/meter.h"
#include "spec/load.h"
#include "train/trainer.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> stop_asked = false;

void on_signal(int signal) {
  // The second one is meant.
  if (stop_asked.exchange(true) && signal == SIGINT) ::_exit(128 + SIGINT);
}

void listen_to_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) ::sigaction(signal, &action, nullptr);
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

base::Result<spec::JobSpec> load_job(const TrainWords& words, std::string& name) {
  ASSAY_TRY(spec::Loaded loaded, spec::load(words.job, {.overrides = words.sets}));
  auto* job = std::get_if<spec::JobSpec>(&loaded.spec);
  if (job == nullptr) {
    return base::fail(
        base::usage_error(words.job, "is no job", "a job has a [model] and a [batch] or [train]"));
  }
  name = loaded.name;
  if (job->layout.ranks.value_or(1) != 1) {
    return base::fail(base::usage_error(words.job, "asks for more than one rank",
                                        "set layout.ranks=1 and a cluster of one device"));
  }
  return std::move(*job);
}

base::Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::unfit_error(folder, "cannot be made: " + error.message()));
  if (::access(folder.c_str(), W_OK) != 0) {
    return base::fail(base::unfit_error(folder, "cannot be written to", "name another with --out"));
  }
  return {};
}

std::unique_ptr<machine::Meter> meter_of(const Device& device) {
  return device.gpu_bus_id ? machine::gpu_meter(*device.gpu_bus_id) : machine::processor_meter();
}

}  // namespace

base::Result<base::ExitCode> train_model(const Session& session, const TrainWords& words) {
  std::string name;
  ASSAY_TRY(spec::JobSpec job, load_job(words, name));
  ASSAY_TRY(const auto stop_after, parse_stop(words.stop_after));
  const fs::path out = words.out.empty() ? fs::path("runs") / name : fs::path(words.out);
  // What can be wrong without a device is found out before one is taken.
  ASSAY_TRY_VOID(make_folder(out));
  ASSAY_TRY_VOID(train::check_folder(out, words.resume));
  ASSAY_TRY(const data::TokenSet set, open_training_data(job, out));
  ASSAY_TRY(const auto validation, open_validation_data(job));
  ASSAY_TRY(Device device, choose_device(words.device, job));
  const data::BatchReader reader(set, static_cast<std::uint64_t>(job.train.seed),
                                 static_cast<std::int32_t>(job.model.vocab));
  ASSAY_TRY(const train::Planned planned,
            train::plan_step(job, step::choices_of(job),
                             train::room_on(*device.backend, device.available_bytes)));
  print_plan(session, planned, device);
  ASSAY_TRY_VOID(device.backend->prepare(planned.program, planned.plan));
  listen_to_signals();
  Telemetry telemetry(*device.backend, meter_of(device));
  ASSAY_TRY(const auto report, RunReport::open(session, job, out, telemetry, stop_after));
  report->planned(plan_record(name, job, planned, device));
  const train::RunOptions options{.out = out,
                                  .resume = words.resume,
                                  .stop_after = stop_after,
                                  .stop = &stop_asked,
                                  .validation = validation ? &*validation : nullptr};
  ASSAY_TRY(const train::RunResult result,
            train::train(job, planned, *device.backend, reader, options, *report));
  print_result(session, planned, device, telemetry, report->totals(), result);
  session.next(fmt::format("assay generate {} --prompt \"…\"", result.checkpoint.string()));
  return result.ending == train::Ending::kNotFinite ? base::ExitCode::kNo : base::ExitCode::kYes;
}

}  // namespace assay::cli
