#include "assay/shared/top_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/process/proc.h"
#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "store/location.h"
#include "store/metrics.h"
#include "store/ranks.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

// A locked store must not hold the display up: the last known runs are shown instead.
constexpr std::chrono::milliseconds kStoreTimeout{250};
constexpr base::Bytes kLongestTitle{65536};

// The command line of a living process of the run: all that is known of other projects' runs.
std::string title_from_processes(collect::GpuCounters& count, const std::vector<bool>& living) {
  for (std::size_t i = 0; i < living.size(); ++i) {
    if (!living[i]) continue;
    const int process = count.region().slots[i].process.load();
    const auto arguments = base::process_arguments(process, kLongestTitle);
    if (arguments.empty()) continue;
    return std::string(base::trim(fmt::format("{}", fmt::join(arguments, " "))));
  }
  return "";
}

}  // namespace

base::Result<TopSampler> TopSampler::open() {
  TopSampler sampler;
  // Without a store, other runs and GPUs are still shown; one that cannot be read has runs that
  // would be missing.
  std::error_code error;
  const auto directory = std::filesystem::current_path(error);
  if (error) return sampler;
  const auto found = store::find(directory);
  if (!found || !*found || !std::filesystem::exists((*found)->database, error)) return sampler;
  ASSAY_TRY(store::Store opened,
            store::Store::open(**found, store::StoreProgram{}, store::Access::kRead));
  sampler.store_.emplace(std::move(opened));
  (void)sampler.store_->database().set_busy_timeout(kStoreTimeout);
  return sampler;
}

TopSampler::TopSampler() {
  if (auto watch = machine::GpuMonitor::open()) {
    gpus_.emplace(*std::move(watch));
    if (gpus_->gpus().empty()) no_gpus_ = "the driver reports none";
  } else {
    no_gpus_ = watch.error().line();
  }
}

void TopSampler::read_stored_runs() {
  if (!store_) return;
  const auto running = store::list_runs(*store_, {.status = store::RunStatus::kRunning});
  if (!running) return;
  stored_.clear();
  for (const store::RunRecord& run : *running) {
    stored_[run.uid] = {.id = run.id,
                        .title = run.name.empty() ? lineage::command_text(run) : run.name,
                        .spool = run.spool,
                        .started_unix_ns = run.started_unix_ns,
                        .collector = static_cast<pid_t>(run.collector_pid),
                        .alive = store::is_alive(run.collector_pid, run.collector_start_ticks)};
  }
}

std::vector<RunningRun> TopSampler::running() {
  read_stored_runs();
  std::vector<std::string> uids = collect::GpuCounters::uids();
  for (const auto& [uid, run] : stored_) uids.push_back(uid);
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  std::vector<RunningRun> runs;
  for (const std::string& uid : uids) {
    const auto stored = stored_.find(uid);
    const bool known = stored != stored_.end();
    RunningRun run{.uid = uid, .title = {}};
    run.gpu = collect::GpuCounters::find(uid, known ? stored->second.spool : "");
    const std::vector<bool> living = run.gpu ? run.gpu->living() : std::vector<bool>{};
    const bool lives = std::find(living.begin(), living.end(), true) != living.end();
    // A region without processes may have been left behind by a collector that was killed.
    if (!lives && !(known && stored->second.alive)) continue;
    if (known) {
      run.id = stored->second.id;
      run.title = stored->second.title;
      run.started_unix_ns = stored->second.started_unix_ns;
      if (stored->second.alive) run.collector = stored->second.collector;
    } else {
      run.title = title_from_processes(*run.gpu, living);
    }
    runs.push_back(std::move(run));
  }
  std::stable_sort(runs.begin(), runs.end(), [](const RunningRun& a, const RunningRun& b) {
    return a.id.has_value() != b.id.has_value() ? a.id.has_value() : a.id < b.id;
  });
  return runs;
}

std::optional<share::TrainingProgress> TopSampler::training_of(std::int64_t run) {
  const auto last = [&](const char* name) -> std::optional<store::MetricPoint> {
    auto point = store::last_point(*store_, run, name);
    return point ? *point : std::nullopt;
  };
  const auto loss = last("loss");
  if (!loss) return std::nullopt;
  const auto speed = last("tokens_per_s");
  return share::TrainingProgress{
      .step = loss->step, .loss = loss->value, .tokens_per_s = speed ? speed->value : std::nullopt};
}

std::vector<share::RankProgress> TopSampler::ranks_of(std::int64_t run) {
  const auto stored = store::load_ranks(*store_, run);
  if (!stored) return {};
  const auto slowest = store::slowest_of(*stored);
  std::vector<share::RankProgress> ranks;
  for (const store::RankRecord& rank : *stored) {
    ranks.push_back({.rank = rank.rank,
                     .host = rank.host,
                     .place = rank.place,
                     .step = rank.step,
                     .step_s = rank.last_step_s,
                     .wait_s = rank.last_wait_s,
                     .memory_bytes = rank.memory_bytes,
                     .planned_bytes = rank.planned_bytes,
                     .slowest = slowest && slowest->rank == rank.rank});
  }
  return ranks;
}

share::RunSample gpu_sample(RunningRun& run) {
  share::RunSample sample{.uid = run.uid, .id = run.id, .title = run.title};
  if (run.gpu) sample.gpu = share::state_of(run.gpu->region(), run.gpu->living());
  return sample;
}

share::UsageSample TopSampler::sample() {
  share::UsageSample sample;
  const std::int64_t wall_ns = base::system_clock().wall_ns();
  std::optional<collect::ProcessTable> processes;
  for (RunningRun& run : running()) {
    share::RunSample one = gpu_sample(run);
    if (run.id) {
      one.elapsed_s = std::max(0.0, static_cast<double>(wall_ns - run.started_unix_ns) / 1e9);
      one.training = training_of(*run.id);
      if (one.training) one.ranks = ranks_of(*run.id);
    }
    if (run.collector != 0) {
      if (!processes) processes = collect::ProcessTable::read();
      one.usage = processes->usage_below(run.collector);
    }
    sample.runs.push_back(std::move(one));
  }
  sample.no_gpus = no_gpus_;
  if (gpus_) {
    sample.gpus = gpus_->gpus();
    sample.activities = gpus_->sample();
  }
  sample.monotonic_ns = base::system_clock().monotonic_ns();
  return sample;
}

}  // namespace assay::cli
