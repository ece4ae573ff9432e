// assay limit RUN [options]: shows or changes the GPU limits of a running run.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "assay/project.h"
#include "assay/shared/gpu_limits.h"
#include "assay/shared/top_sampler.h"
#include "assay/shared/usage_text.h"
#include "assay/verbs.h"
#include "base/terminal.h"
#include "base/text.h"
#include "lineage/graph/resolve.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

struct LimitOptions {
  std::string run;
  share::GpuLimitOptions limits;
  bool none = false;
};

// A running run whose GPU work is counted, and the environment that it was started in.
struct Target {
  RunningRun run;
  share::CudaEnvironment cuda;
  bool has_environment = true;  // false: another project's run, whose device indices are unknown
};

base::Error not_counted(const std::string& where) {
  return base::unfit_error(
      where, "its GPU work is not counted, so it cannot be limited",
      "no CUDA driver was found when it started; ASSAY_GPU=1 makes assay run count anyway");
}

base::Result<Target> target_in_store(store::Store& store, store::RunId id) {
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, id, store::WithContext::kYes));
  const std::string where = fmt::format("run {}", id);
  if (run.status != store::RunStatus::kRunning) {
    return base::fail(
        base::usage_error(where, fmt::format("it is not running ({})", store::name_of(run.status)),
                          "`assay top` lists the runs that are"));
  }
  auto count = collect::GpuCounters::find(run.uid, run.spool);
  if (!count) return base::fail(not_counted(where));
  Target target{.run = {.uid = run.uid, .title = run.name, .gpu = *std::move(count), .id = id},
                .cuda = {}};
  const auto variable = [&](const char* name) -> std::optional<std::string> {
    const auto found = run.context.environment.find(name);
    if (found == run.context.environment.end()) return std::nullopt;
    return found->second;
  };
  target.cuda = {variable("CUDA_VISIBLE_DEVICES"), variable("CUDA_DEVICE_ORDER")};
  return target;
}

// A run of another project, by a prefix of its uid, as `assay top` shows it.
base::Result<std::optional<Target>> target_elsewhere(const std::string& name) {
  constexpr std::size_t kShortestUid = 4;
  std::optional<Target> found;
  if (name.size() < kShortestUid) return found;
  ASSAY_TRY(TopSampler sampler, TopSampler::open());
  for (RunningRun& run : sampler.running()) {
    if (!run.gpu || !run.uid.starts_with(name)) continue;
    if (found) {
      return base::fail(base::usage_error(fmt::format("'{}'", name),
                                          "several running runs have uids that start with this",
                                          "give more digits"));
    }
    found = Target{.run = std::move(run), .cuda = {}, .has_environment = false};
  }
  return found;
}

base::Result<Target> find_target(const std::string& name) {
  auto store = open_store();
  base::Error unknown;
  if (store) {
    const auto id = lineage::resolve_run(*store, name);
    if (id) return target_in_store(*store, *id);
    unknown = id.error();
  } else {
    unknown = store.error();
  }
  ASSAY_TRY(std::optional<Target> target, target_elsewhere(name));
  if (!target) return base::fail(std::move(unknown));
  return *std::move(target);
}

base::Result<void> change(Target& target, const LimitOptions& options) {
  share::LimitContext here = limit_context();
  here.cuda = target.cuda;
  here.unchecked_allowed = true;  // it is running, so there is a driver, with or without NVML
  for (const std::string& device : options.limits.devices) {
    const std::string name = device.substr(0, device.find('='));
    if (target.has_environment || name.starts_with("GPU-") || name.starts_with("MIG-")) {
      continue;
    }
    return base::fail(base::usage_error(
        "limit --gpu", fmt::format("GPU '{}' of a run of another project is ambiguous", name),
        "give its UUID; nvidia-smi -L lists them"));
  }
  ASSAY_TRY(const share::LimitPlan plan, share::plan_limits("limit", options.limits, here));
  if (options.none) share::clear_limits(target.run.gpu->region());
  if (!plan.empty() && !share::apply(plan, target.run.gpu->region())) {
    return base::fail(base::usage_error(
        "limit --gpu", fmt::format("the run has limits for {} GPUs already", wire::kGpuDevices),
        "give all GPUs the same limits with --gpu-memory and --gpu-compute"));
  }
  return {};
}

base::Result<base::ExitCode> limit(const Session& session, const LimitOptions& options) {
  ASSAY_TRY(Target target, find_target(options.run));
  const bool changes = options.none || !options.limits.empty();
  if (changes) ASSAY_TRY_VOID(change(target, options));
  share::UsageSample sample;
  sample.runs.push_back(gpu_sample(target.run));
  if (const auto watch = machine::GpuMonitor::open()) {
    sample.gpus = watch->gpus();
    sample.activities.resize(sample.gpus.size());
  }
  const share::UsageView view = share::usage_view(nullptr, sample);
  const share::RunView& run = view.runs.front();
  base::Json document = share::usage_json(view)["runs"][0];
  document["others"] = share::limits_json(run.run.gpu->all);
  session.print_json(document);
  session.print(limits_text(run, base::terminal_columns(STDOUT_FILENO)));
  for (const share::DeviceView& device : run.devices) {
    if (device.state.limit == 0 || device.state.used <= device.state.limit) continue;
    session.print(
        fmt::format("\nGPU {}: the run holds more than its limit. Nothing is taken away; "
                    "allocations fail until enough has been freed.\n",
                    device.gpu.empty() ? device.uuid : device.gpu));
  }
  session.next(
      changes ? "assay top"
              : fmt::format("assay limit {} --gpu-memory SIZE", base::path_argument(options.run)));
  return base::ExitCode::kYes;
}

}  // namespace

Verb limit_verb(const Session& session) {
  const auto given = std::make_shared<LimitOptions>();
  Verb verb = {
      .name = "limit",
      .description = "show or change the GPU limits of a running run",
      .examples = {"assay limit sweep", "assay limit sweep --gpu-memory 20GiB --gpu-compute 30%",
                   "assay limit sweep --gpu-compute 60% --gpu-borrow", "assay limit sweep --none"},
      .arguments = {{"RUN", "number, last, @STAGE, name, label or uid", &given->run, true,
                     [] { return std::vector<std::string>{"last"}; }}},
      .action = [&session, given] { return limit(session, *given); }};
  add_limit_options(given->limits, verb.options);
  verb.options.push_back({"--gpu-no-borrow", "no more than the share, even while the GPU is idle",
                          &given->limits.no_borrow});
  verb.options.push_back({"--none", "remove all limits before setting those given", &given->none});
  return verb;
}

}  // namespace assay::cli
