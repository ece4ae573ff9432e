// assay limit RUN [options]: what a running run may have of GPUs, told or changed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "assay/limit/gpu_limits.h"
#include "assay/project.h"
#include "assay/top/print.h"
#include "assay/top/watch.h"
#include "assay/verbs.h"
#include "base/terminal.h"
#include "lineage/graph/resolve.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

struct LimitOptions {
  std::string run;
  share::LimitWords words;
  bool none = false;
};

// A running run, and what its command was told about GPUs.
struct Target {
  RunningRun run;
  share::CudaEnvironment cuda;
  bool indices_mean_something = true;
};

base::Error no_region(const std::string& where) {
  return base::usage_error(
      where, "it counts no GPU work, so there is nothing to limit",
      "no CUDA driver was found when it started; ASSAY_GPU=1 says it is there");
}

base::Result<Target> target_in_store(store::Store& store, store::RunId id) {
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, id, store::WithContext::kYes));
  const std::string where = fmt::format("run {}", id);
  if (run.status != store::RunStatus::kRunning) {
    return base::fail(
        base::usage_error(where, fmt::format("it is not running ({})", store::name_of(run.status)),
                          "`assay top` lists the runs that are"));
  }
  auto count = collect::GpuCount::find(run.uid, run.spool);
  if (!count) return base::fail(no_region(where));
  Target target{.run = {.count = *std::move(count), .uid = run.uid, .id = id, .title = run.name},
                .cuda = {}};
  const auto variable = [&](const char* name) -> std::optional<std::string> {
    const auto found = run.context.environment.find(name);
    if (found == run.context.environment.end()) return std::nullopt;
    return found->second;
  };
  target.cuda = {variable("CUDA_VISIBLE_DEVICES"), variable("CUDA_DEVICE_ORDER")};
  return target;
}

// By the beginning of its uid, as `assay top` shows it: a run of another project.
base::Result<std::optional<Target>> target_elsewhere(const std::string& name) {
  constexpr std::size_t kShortestUid = 4;
  std::optional<Target> found;
  if (name.size() < kShortestUid) return found;
  TopWatch watch;
  for (RunningRun& run : watch.runs()) {
    if (!run.uid.starts_with(name)) continue;
    if (found) {
      return base::fail(base::usage_error(
          fmt::format("'{}'", name), "several running runs start with this", "give more digits"));
    }
    found = Target{.run = std::move(run), .cuda = {}, .indices_mean_something = false};
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
  share::Surroundings here = surroundings_here();
  here.cuda = target.cuda;
  here.unchecked_allowed = true;  // it runs: the driver is there, whoever we can ask
  for (const std::string& device : options.words.devices) {
    const std::string name = device.substr(0, device.find('='));
    if (target.indices_mean_something || name.starts_with("GPU-") || name.starts_with("MIG-")) {
      continue;
    }
    return base::fail(base::usage_error(
        "limit --gpu", fmt::format("which GPU is '{}' to a run of another project?", name),
        "give its UUID; nvidia-smi -L lists them"));
  }
  ASSAY_TRY(const share::LimitPlan plan, share::plan_limits("limit", options.words, here));
  if (options.none) share::lift_all(target.run.count.region());
  if (!plan.empty() && !share::apply(plan, target.run.count.region())) {
    return base::fail(base::usage_error(
        "limit --gpu", fmt::format("the run has {} GPUs already", wire::kGpuDevices),
        "limit them alike with --gpu-memory and --gpu-compute"));
  }
  return {};
}

base::Result<base::ExitCode> limit(const Session& session, const LimitOptions& options) {
  ASSAY_TRY(Target target, find_target(options.run));
  const bool changes = options.none || !options.words.empty();
  if (changes) ASSAY_TRY_VOID(change(target, options));
  share::Look look;
  look.runs.push_back(TopWatch::look_at(target.run));
  if (const auto watch = machine::GpuWatch::open()) {
    look.gpus = watch->gpus();
    look.activities.resize(look.gpus.size());
  }
  const share::View view = share::view_of(nullptr, look);
  const share::RunView& run = view.runs.front();
  base::Json document = share::view_json(view)["runs"][0];
  document["others"] = share::limits_json(run.run.state.all);
  session.print_json(document);
  session.print(limits_text(run, base::terminal_columns(STDOUT_FILENO)));
  for (const share::DeviceView& device : run.devices) {
    if (device.state.limit == 0 || device.state.used <= device.state.limit) continue;
    session.print(
        fmt::format("\nGPU {}: the run holds more than its limit. Nothing is taken away; "
                    "allocations fail until "
                    "it has given enough back.\n",
                    device.gpu.empty() ? device.uuid : device.gpu));
  }
  session.next(changes ? "assay top"
                       : fmt::format("assay limit {} --gpu-memory SIZE", options.run));
  return base::ExitCode::kYes;
}

}  // namespace

Verb limit_verb(const Session& session) {
  const auto given = std::make_shared<LimitOptions>();
  Verb verb = {.name = "limit",
               .description = "what a running run may have of GPUs: told, or changed",
               .examples = {"assay limit --help"},
               .arguments = {{"RUN", "number, last, @STEP, name, label or uid", &given->run, true,
                              [] { return std::vector<std::string>{"last"}; }}},
               .action = [&session, given] { return limit(session, *given); }};
  add_limit_options(given->words, verb.options);
  verb.options.push_back({"--gpu-no-borrow", "no more than the share, whoever wants the GPU",
                          &given->words.no_borrow});
  verb.options.push_back({"--none", "take all limits away first", &given->none});
  return verb;
}

}  // namespace assay::cli
