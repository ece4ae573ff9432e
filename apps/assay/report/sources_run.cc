// A run of the store with everything a report shows of it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "assay/project.h"
#include "assay/report/sources.h"
#include "base/clock.h"
#include "base/host_name.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/resolve.h"
#include "plan/plan.h"
#include "spec/enum_names.h"
#include "spec/load.h"
#include "spec/this_machine.h"
#include "store/artifacts.h"
#include "store/plans.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

void take_plan(const plan::Plan& plan, std::string source, report::ReportedRun& run) {
  if (!plan.unknown.empty()) run.not_predicted = plan.unknown.front();
  if (!plan.step && !plan.memory) return;
  report::Predicted predicted{.of = fmt::format("{} on {}", plan.job, plan.device),
                              .source = std::move(source)};
  if (plan.memory) {
    predicted.memory_bytes = static_cast<double>(plan.memory->need.total().count());
  }
  if (plan.step) {
    const plan::PlannedStep& step = *plan.step;
    predicted.step_s = step.time.total.count();
    predicted.step_interval_s = {step.low().count(), step.high().count()};
    predicted.tokens_per_s = step.tokens_per_s;
    predicted.mfu = step.mfu;
    predicted.mfu_6n = step.mfu_with_embedding;
    for (const plan::StepPart& part : plan::step_parts()) {
      const double seconds = (step.time.*part.time).count();
      if (seconds > 0) predicted.parts_s.emplace_back(part.name, seconds);
    }
  }
  run.predicted = std::move(predicted);
}

base::Result<void> take_stored(const store::PlanRecord& record, report::ReportedRun& run) {
  ASSAY_TRY(const plan::Plan plan, plan::plan_from_json(record.plan));
  std::string source =
      fmt::format("planned when the run started, {}", base::utc_text(record.planned_unix_ns));
  if (plan.constants != plan::constants_version({})) {
    source += "; the model's constants have changed since";
  }
  take_plan(plan, std::move(source), run);
  return {};
}

// The job that a command of the trainer names, and what it sets; empty for other commands.
struct TrainedJob {
  std::string name;
  std::vector<std::string> sets;
  bool on_cpu = false;  // by --device
};

TrainedJob trained_job(const store::RunRecord& record) {
  TrainedJob trained;
  const std::vector<std::string>& arguments = record.command;
  if (arguments.size() < 3 || arguments[1] != "train") return trained;
  const std::string program = fs::path(arguments[0]).filename();
  if (program != "assay-train" && program != "assay") return trained;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const std::string& one = arguments[i];
    const bool takes_value =
        one == "--out" || one == "--stop-after" || one == "--device" || one == "--set";
    if (one == "--set" && i + 1 < arguments.size()) trained.sets.push_back(arguments[i + 1]);
    if (one == "--device" && i + 1 < arguments.size()) trained.on_cpu = arguments[i + 1] == "cpu";
    if (takes_value) {
      ++i;
    } else if (!one.starts_with("--")) {
      trained.name = one;
    }
  }
  // A file's name is relative to the folder that the run started in.
  const bool file = trained.name.find('/') != std::string::npos || trained.name.ends_with(".toml");
  if (file) trained.name = (fs::path(record.directory) / trained.name).string();
  return trained;
}

// The job as its file is now, if it can still be read and describes the machine that it ran on.
base::Result<spec::Loaded> job_as_written(const store::RunRecord& record,
                                          const TrainedJob& trained) {
  bool needs_machine = false;
  const auto machine = [&] {
    needs_machine = true;
    return spec::this_machine_document();
  };
  ASSAY_TRY(spec::Loaded loaded, spec::load(trained.name, {.overrides = trained.sets,
                                                           .this_machine = machine,
                                                           .ranks_from_layout = trained.on_cpu,
                                                           .cpu_ranks_from_layout = true}));
  if (needs_machine && base::host_name() != record.context.host) {
    return base::fail(base::unfit_error(
        loaded.name, fmt::format("names no cluster and ran on {}", record.context.host),
        "make the report there"));
  }
  if (!std::holds_alternative<spec::JobSpec>(loaded.spec)) {
    return base::fail(base::usage_error(loaded.name, "is no longer a job"));
  }
  return loaded;
}

// How many of the run's ranks were on the machine that the record describes: all of them, unless
// they reported their hosts. Reported host names may be truncated.
std::int64_t ranks_on_machine(const report::ReportedRun& run, const spec::JobSpec& job) {
  constexpr std::size_t kLongestName = 63;
  const std::string here = run.record.context.host.substr(0, kLongestName);
  const std::int64_t there = std::ranges::count(run.ranks, here, &store::RankRecord::host);
  return std::max<std::int64_t>(1, there > 0 ? there : job.layout.ranks.value_or(1));
}

// A CPU of that machine, which its ranks share.
plan::RankDevice cpu_of(const report::ReportedRun& run, const spec::JobSpec& job) {
  const base::Json& machine = run.record.context.machine;
  const bool known = machine.is_object() && machine.contains("memory_bytes") &&
                     machine.at("memory_bytes").is_number_integer();
  const std::int64_t bytes = known ? machine.at("memory_bytes").get<std::int64_t>() : 0;
  return {.cpu = true, .memory = base::Bytes(bytes / ranks_on_machine(run, job))};
}

base::Result<void> predict_now(const TrainedJob& trained, report::ReportedRun& run) {
  ASSAY_TRY(const spec::Loaded loaded, job_as_written(run.record, trained));
  const auto& job = std::get<spec::JobSpec>(loaded.spec);
  plan::Plan plan =
      trained.on_cpu
          ? plan::plan_without_step(loaded.name, job, "CPUs",
                                    "it ran on CPUs, but step times are predicted only for GPUs")
          : plan::plan_of(loaded.name, job);
  if (!plan.step) {
    run.not_predicted = plan.unknown.front();
    if (!plan.memory) ASSAY_TRY_VOID(plan::add_programs(plan, job, cpu_of(run, job)));
  }
  take_plan(plan, "not stored with the run; predicted now, from the job as it is written now", run);
  return {};
}

// Names of the run's GPUs, as the driver gives them.
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

void add_prediction(store::Store& store, report::ReportedRun& run) {
  const auto stored = store::load_plan(store, run.record.id);
  base::Result<void> taken;
  if (!stored) {
    taken = base::fail(stored.error());
  } else if (*stored) {
    taken = take_stored(**stored, run);
  } else {
    const TrainedJob trained = trained_job(run.record);
    if (trained.name.empty()) return;  // another program's run: no prediction is expected
    taken = predict_now(trained, run);
  }
  if (!taken && run.not_predicted.empty()) run.not_predicted = taken.error().line();
}

std::vector<report::Offer> offers_of(const store::RunRecord& record) {
  const std::vector<std::string> gpus = gpu_names(record);
  if (gpus.empty()) return {};
  const std::string device = device_preset(gpus.front());
  const auto prices = spec::preset_prices();
  if (device.empty() || !prices) return {};
  // Those that it allocated memory on, if that was counted; else all that it could see.
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

constexpr std::size_t kBoxesShown = 12;
constexpr std::size_t kBoxCommand = 40;

std::string run_text(const store::RunRecord& record) {
  return fmt::format("{} {}", lineage::short_name(record),
                     base::shortened(lineage::command_text(record), kBoxCommand));
}

void add_rest(std::vector<plot::FlowBox>& boxes, std::int64_t all) {
  const std::int64_t more = all - static_cast<std::int64_t>(boxes.size());
  if (more > 0) boxes.push_back({fmt::format("and {} more", base::grouped(more)), "assay show"});
}

base::Result<void> add_lineage(store::Store& store, const std::filesystem::path& directory,
                               report::ReportedRun& run) {
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  for (const store::Input& input : run.record.inputs) {
    if (run.lineage.inputs.size() == kBoxesShown) break;
    ASSAY_TRY(const auto from, producers.of(run.record, input));
    std::string detail = base::to_text(base::Bytes(input.size));
    if (from) {
      ASSAY_TRY(const store::RunRecord maker, store::head_of(store, from->run));
      detail = fmt::format("from {}", run_text(maker));
    }
    run.lineage.inputs.push_back({lineage::shown_path(input.path, directory), std::move(detail)});
  }
  add_rest(run.lineage.inputs, run.record.input_count);
  for (const store::Output& output : run.record.outputs) {
    if (run.lineage.outputs.size() == kBoxesShown) break;
    ASSAY_TRY(const auto readers, producers.readers(run.record, output));
    std::string detail = fmt::format("{}, {}", store::name_of(output.status),
                                     base::to_text(base::Bytes(output.size)));
    if (!readers.empty()) {
      ASSAY_TRY(const store::RunRecord reader, store::head_of(store, readers.front().run));
      detail =
          fmt::format("read by {}{}", run_text(reader),
                      readers.size() > 1 ? fmt::format(" and {} more", readers.size() - 1) : "");
    }
    run.lineage.outputs.push_back({lineage::shown_path(output.path, directory), std::move(detail)});
  }
  add_rest(run.lineage.outputs, run.record.output_count);
  return {};
}

base::Result<std::optional<double>> rate_of(const char* option, std::string_view text, double most,
                                            const char* example) {
  if (text.empty()) return std::nullopt;
  if (text.starts_with('$')) text.remove_prefix(1);
  return number_option<double>(option, text, 0, most, example);
}

}  // namespace

base::Result<report::Rates> rates_of(const ReportOptions& options) {
  constexpr double kMostPerHour = 1e7;
  constexpr double kMostGrams = 1e4;
  report::Rates rates;
  ASSAY_TRY(rates.dollars_per_hour,
            rate_of("--price", options.price, kMostPerHour,
                    "price in dollars per hour, for all machines together, as in --price 31.92"));
  ASSAY_TRY(rates.grams_per_kwh, rate_of("--carbon", options.carbon, kMostGrams,
                                         "grams of CO2 per kWh, as in --carbon 380"));
  return rates;
}

base::Result<report::ReportedRun> reported_run(store::Store& store, const std::string& name,
                                               const report::Rates& rates) {
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const store::RunId id, lineage::resolve_run(store, name));
  report::ReportedRun run;
  ASSAY_TRY(run.record, store::load_run(store, id));
  ASSAY_TRY(run.metrics, store::load_metrics(store, id));
  ASSAY_TRY(run.ranks, store::load_ranks(store, id));
  run.seen_unix_ns = base::system_clock().wall_ns();
  run.command = lineage::command_text(run.record);
  run.rates = rates;
  if (!rates.dollars_per_hour) run.rates.offers = offers_of(run.record);
  ASSAY_TRY_VOID(add_lineage(store, directory, run));
  add_prediction(store, run);
  return run;
}

}  // namespace assay::cli
