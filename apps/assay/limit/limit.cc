// assay limit JOB [options]: what a running job may have of GPUs, told or changed.
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
#include "lineage/graph/artifact_name.h"
#include "store/job_reader.h"

namespace assay::cli {
namespace {

struct LimitOptions {
  std::string job;
  share::LimitWords words;
  bool none = false;
};

// A running job, and what its command was told about GPUs.
struct Target {
  RunningJob job;
  share::CudaEnvironment cuda;
  bool indices_mean_something = true;
};

base::Error no_region(const std::string& where) {
  return base::usage_error(
      where, "it counts no GPU work, so there is nothing to limit",
      "no CUDA driver was found when it started; ASSAY_GPU=1 says it is there");
}

base::Result<Target> target_in_store(store::Store& store, store::JobId id) {
  ASSAY_TRY(const store::Job job, store::head_of(store, id, store::WithContext::kYes));
  const std::string where = fmt::format("job {}", id);
  if (job.status != store::JobStatus::kRunning) {
    return base::fail(
        base::usage_error(where, fmt::format("it is not running ({})", store::name_of(job.status)),
                          "`assay top` lists the jobs that are"));
  }
  auto count = collect::GpuCount::find(job.uid, job.spool);
  if (!count) return base::fail(no_region(where));
  Target target{.job = {.count = *std::move(count), .uid = job.uid, .id = id, .title = job.name},
                .cuda = {}};
  const auto variable = [&](const char* name) -> std::optional<std::string> {
    const auto found = job.context.environment.find(name);
    if (found == job.context.environment.end()) return std::nullopt;
    return found->second;
  };
  target.cuda = {variable("CUDA_VISIBLE_DEVICES"), variable("CUDA_DEVICE_ORDER")};
  return target;
}

// By the beginning of its uid, as `assay top` shows it: a job of another project.
base::Result<std::optional<Target>> target_elsewhere(const std::string& name) {
  constexpr std::size_t kShortestUid = 4;
  std::optional<Target> found;
  if (name.size() < kShortestUid) return found;
  TopWatch watch;
  for (RunningJob& job : watch.jobs()) {
    if (!job.uid.starts_with(name)) continue;
    if (found) {
      return base::fail(base::usage_error(
          fmt::format("'{}'", name), "several running jobs start with this", "give more digits"));
    }
    found = Target{.job = std::move(job), .cuda = {}, .indices_mean_something = false};
  }
  return found;
}

base::Result<Target> find_target(const std::string& name) {
  auto store = open_store();
  base::Error unknown;
  if (store) {
    const auto id = lineage::job_named(*store, name);
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
        "limit --gpu", fmt::format("which GPU is '{}' to a job of another project?", name),
        "give its UUID; nvidia-smi -L lists them"));
  }
  ASSAY_TRY(const share::LimitPlan plan, share::plan_limits("limit", options.words, here));
  if (options.none) share::lift_all(target.job.count.region());
  if (!plan.empty() && !share::apply(plan, target.job.count.region())) {
    return base::fail(base::usage_error(
        "limit --gpu", fmt::format("the job has {} GPUs already", wire::kGpuDevices),
        "limit them alike with --gpu-memory and --gpu-compute"));
  }
  return {};
}

base::Result<base::ExitCode> limit(const Session& session, const LimitOptions& options) {
  ASSAY_TRY(Target target, find_target(options.job));
  const bool changes = options.none || !options.words.empty();
  if (changes) ASSAY_TRY_VOID(change(target, options));
  share::Look look;
  look.jobs.push_back(TopWatch::look_at(target.job));
  if (const auto watch = machine::GpuWatch::open()) {
    look.gpus = watch->gpus();
    look.activities.resize(look.gpus.size());
  }
  const share::View view = share::view_of(nullptr, look);
  const share::JobView& job = view.jobs.front();
  base::Json document = share::view_json(view)["jobs"][0];
  document["others"] = share::limits_json(job.job.state.all);
  session.print_json(document);
  session.print(limits_text(job, base::terminal_columns(STDOUT_FILENO)));
  for (const share::DeviceView& device : job.devices) {
    if (device.state.limit == 0 || device.state.used <= device.state.limit) continue;
    session.print(
        fmt::format("\nGPU {}: the job holds more than its limit. Nothing is taken away; "
                    "allocations fail until "
                    "it has given enough back.\n",
                    device.gpu.empty() ? device.uuid : device.gpu));
  }
  session.next(changes ? "assay top"
                       : fmt::format("assay limit {} --gpu-memory SIZE", options.job));
  return base::ExitCode::kYes;
}

}  // namespace

Verb limit_verb(const Session& session) {
  const auto given = std::make_shared<LimitOptions>();
  Verb verb = {.name = "limit",
               .description = "what a running job may have of GPUs: told, or changed",
               .examples = {"assay limit --help"},
               .arguments = {{"JOB", "number, last, @STEP, name, label or uid", &given->job, true,
                              [] { return std::vector<std::string>{"last"}; }}},
               .action = [&session, given] { return limit(session, *given); }};
  add_limit_options(given->words, verb.options);
  verb.options.push_back({"--gpu-no-borrow", "no more than the share, whoever wants the GPU",
                          &given->words.no_borrow});
  verb.options.push_back({"--none", "take all limits away first", &given->none});
  return verb;
}

}  // namespace assay::cli
