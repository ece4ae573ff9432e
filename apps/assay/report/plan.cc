// What plans and prices say about a job that ran.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <limits>

#include "assay/plan/print.h"
#include "assay/report/sources.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/calibrate/calibration.h"
#include "plan/prediction.h"
#include "spec/enum_names.h"
#include "spec/load.h"
#include "spec/this_machine.h"
#include "step/program.h"
#include "train/choose_recompute.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

// The job that a command of the trainer names, and what it sets; empty for other commands.
struct TrainedJob {
  std::string name;
  std::vector<std::string> sets;
  bool on_cpu = false;  // it was told so
};

TrainedJob trained_job(const store::RunRecord& record) {
  TrainedJob trained;
  const std::vector<std::string>& words = record.command;
  if (words.size() < 3 || words[1] != "train") return trained;
  const std::string program = fs::path(words[0]).filename();
  if (program != "assay-train" && program != "assay") return trained;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const bool takes_one = words[i] == "--out" || words[i] == "--stop-after" ||
                           words[i] == "--device" || words[i] == "--set";
    if (words[i] == "--set" && i + 1 < words.size()) trained.sets.push_back(words[i + 1]);
    if (words[i] == "--device" && i + 1 < words.size()) trained.on_cpu = words[i + 1] == "cpu";
    if (takes_one) {
      ++i;
    } else if (!words[i].starts_with("--")) {
      trained.name = words[i];
    }
  }
  // A file is where the job ran.
  const bool file = trained.name.find('/') != std::string::npos || trained.name.ends_with(".toml");
  if (file) trained.name = (fs::path(record.directory) / trained.name).string();
  return trained;
}

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// The job as it is written now, if it can still be read and means the machine that it ran on.
base::Result<spec::Loaded> job_as_written(const store::RunRecord& record,
                                          const TrainedJob& trained) {
  bool needs_machine = false;
  const auto machine = [&] {
    needs_machine = true;
    return spec::this_machine_document();
  };
  ASSAY_TRY(spec::Loaded loaded,
            spec::load(trained.name, {.overrides = trained.sets, .this_machine = machine}));
  if (needs_machine && this_host() != record.context.host) {
    return base::fail(base::unfit_error(
        loaded.name, fmt::format("names no cluster and ran on {}", record.context.host),
        "make the report there"));
  }
  if (!std::holds_alternative<spec::JobSpec>(loaded.spec)) {
    return base::fail(base::usage_error(loaded.name, "is no job any more"));
  }
  return loaded;
}

base::Result<report::Predicted> step_predicted(const spec::JobSpec& job,
                                               const TrainedJob& trained) {
  if (trained.on_cpu) {
    return base::fail(base::unfit_error("", "it ran on CPUs, and steps are predicted for GPUs"));
  }
  const plan::Calibration calibration = plan::shipped_calibration();
  ASSAY_TRY(const plan::Prediction made,
            plan::predict(job, {}, {calibration.constants, calibration.memory}));
  const plan::Work& work = made.work;
  const plan::Interval& interval =
      calibration.unknown_source.of(work.software.kind(work.shape.is_moe()));
  const double step = made.step.total.count();
  report::Predicted predicted{.step_s = step,
                              .step_interval_s = {step * interval.low, step * interval.high},
                              .tokens_per_s = made.tokens_per_second,
                              .mfu = made.mfu,
                              .mfu_6n = made.mfu_with_embedding,
                              .memory_bytes = static_cast<double>(made.memory.total().count()),
                              .parts_s = {}};
  for (const StepPart& part : parts_of(made.step)) {
    if (part.time.count() > 0) predicted.parts_s.emplace_back(part.name, part.time.count());
  }
  return predicted;
}

// What the trainer plans before its first step: known to the byte on any machine.
base::Result<double> arena_bytes(const store::RunRecord& record, const spec::JobSpec& asked) {
  const base::Json& machine = record.context.machine;
  const bool known = machine.is_object() && machine.contains("memory_bytes") &&
                     machine.at("memory_bytes").is_number_integer();
  const train::MemoryBudget budget{
      .available_bytes = known ? machine.at("memory_bytes").get<std::int64_t>()
                               : std::numeric_limits<std::int64_t>::max(),
      .extra_bytes = [](const step::Program&) -> base::Result<std::int64_t> { return 0; }};
  ASSAY_TRY(const train::Planned planned, train::plan_step(asked, step::choices_of(asked), budget));
  return static_cast<double>(planned.plan.bytes);
}

base::Result<void> predict_run(const TrainedJob& trained, report::ReportedRun& run) {
  ASSAY_TRY(const spec::Loaded loaded, job_as_written(run.record, trained));
  const auto& job = std::get<spec::JobSpec>(loaded.spec);
  auto made = step_predicted(job, trained);
  if (made) {
    run.predicted = *std::move(made);
    run.predicted->of =
        fmt::format("{} on {}, as the job is written now", loaded.name, job.cluster.device.name);
    return {};
  }
  run.not_predicted = made.error().line();
  ASSAY_TRY(const double bytes, arena_bytes(run.record, job));
  run.predicted = report::Predicted{.of = fmt::format("{}, as the job is written now", loaded.name),
                                    .memory_bytes = bytes};
  return {};
}

// Names of the job's GPUs, as the driver gave them.
std::vector<std::string> gpu_names(const store::RunRecord& record) {
  std::vector<std::string> names;
  const base::Json& machine = record.context.machine;
  if (!machine.is_object() || !machine.contains("gpus") || !machine.at("gpus").is_array())
    return {};
  for (const base::Json& gpu : machine.at("gpus")) {
    if (!gpu.is_object() || !gpu.contains("name") || !gpu.at("name").is_string()) continue;
    names.push_back(gpu.at("name"));
  }
  return names;
}

std::string device_preset(const std::string& gpu) {
  for (const std::string& name : spec::preset_names(spec::Kind::kDevice)) {
    const auto loaded = spec::load(name);
    if (!loaded) continue;
    const auto* device = std::get_if<spec::DeviceSpec>(&loaded->spec);
    if (device != nullptr && device->name == gpu) return name;
  }
  return {};
}

}  // namespace

void add_prediction(report::ReportedRun& run) {
  const TrainedJob trained = trained_job(run.record);
  if (trained.name.empty()) return;  // somebody else's program: nobody expects one
  if (auto made = predict_run(trained, run); !made && run.not_predicted.empty()) {
    run.not_predicted = made.error().line();
  }
}

std::vector<report::Offer> offers_of(const store::RunRecord& record) {
  const std::vector<std::string> gpus = gpu_names(record);
  if (gpus.empty()) return {};
  const std::string device = device_preset(gpus.front());
  const auto prices = spec::preset_prices();
  if (device.empty() || !prices) return {};
  // Those that it had memory on, if that was counted; else it could have had all.
  const auto used =
      static_cast<std::int64_t>(record.gpu.memory.empty() ? gpus.size() : record.gpu.memory.size());
  std::vector<report::Offer> offers;
  for (const spec::PriceSpec& price : *prices) {
    if (price.device != device || price.devices < 1) continue;
    const std::int64_t rented = (used + price.devices - 1) / price.devices;
    const auto times = static_cast<double>(rented);
    offers.push_back(
        {.provider = price.provider,
         .name = rented == 1 ? price.offer : fmt::format("{} x {}", rented, price.offer),
         .market = std::string(spec::to_text(price.market)),
         .date = base::to_text(price.date),
         .low_per_hour = price.per_hour.low.units() * times,
         .high_per_hour = price.per_hour.high.units() * times,
         .source = price.source});
  }
  return offers;
}

}  // namespace assay::cli
