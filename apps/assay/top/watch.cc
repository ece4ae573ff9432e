#include "assay/top/watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "store/location.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

// The command line of some living process of the run: all there is to say of other projects' runs.
std::string title_from_processes(collect::GpuCount& count, const std::vector<bool>& living) {
  for (std::size_t i = 0; i < living.size(); ++i) {
    if (!living[i]) continue;
    const int process = count.region().slots[i].process.load();
    const auto words =
        base::read_file(fmt::format("/proc/{}/cmdline", process), base::Bytes{65536});
    if (!words || words->empty()) continue;
    std::string title = *words;
    std::replace(title.begin(), title.end(), '\0', ' ');
    return std::string(base::trim(title));
  }
  return "";
}

}  // namespace

TopWatch::TopWatch() {
  // A project's store only adds names: without one, or with a broken one, there is less to say.
  std::error_code error;
  const auto directory = std::filesystem::current_path(error);
  if (!error) {
    if (const auto found = store::find(directory); found && *found) {
      if (auto opened = store::Store::open(**found, store::Program{}, store::Access::kRead)) {
        store_.emplace(*std::move(opened));
      }
    }
  }
  if (auto watch = machine::GpuWatch::open()) {
    gpus_.emplace(*std::move(watch));
    if (gpus_->gpus().empty()) no_gpus_ = "the driver knows none";
  } else {
    no_gpus_ = watch.error().line();
  }
}

std::map<std::string, TopWatch::Known> TopWatch::known_runs() {
  std::map<std::string, Known> known;
  if (!store_) return known;
  const auto running = store::list_runs(*store_, {.status = store::RunStatus::kRunning});
  if (!running) return known;
  for (const store::RunRecord& run : *running) {
    known[run.uid] = {.id = run.id,
                      .title = run.name.empty() ? lineage::command_text(run) : run.name,
                      .spool = run.spool,
                      .alive = store::is_alive(run.collector_pid, run.collector_start_ticks)};
  }
  return known;
}

std::vector<RunningRun> TopWatch::runs() {
  const std::map<std::string, Known> known = known_runs();
  std::vector<std::string> uids = collect::GpuCount::uids();
  for (const auto& [uid, run] : known) uids.push_back(uid);
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  std::vector<RunningRun> runs;
  for (const std::string& uid : uids) {
    const auto run = known.find(uid);
    auto count = collect::GpuCount::find(uid, run == known.end() ? "" : run->second.spool);
    if (!count) continue;
    const std::vector<bool> living = count->living();
    const bool lives = std::find(living.begin(), living.end(), true) != living.end();
    // What a killed collector left behind, with nobody in it, is no run.
    if (!lives && (run == known.end() || !run->second.alive)) continue;
    RunningRun one{.count = *std::move(count), .uid = uid, .id = {}, .title = {}};
    if (run != known.end()) {
      one.id = run->second.id;
      one.title = run->second.title;
    } else {
      one.title = title_from_processes(one.count, living);
    }
    runs.push_back(std::move(one));
  }
  std::stable_sort(runs.begin(), runs.end(), [](const RunningRun& a, const RunningRun& b) {
    return a.id.has_value() != b.id.has_value() ? a.id.has_value() : a.id < b.id;
  });
  return runs;
}

share::RunLook TopWatch::look_at(RunningRun& run) {
  return {.uid = run.uid,
          .id = run.id,
          .title = run.title,
          .state = share::state_of(run.count.region(), run.count.living())};
}

share::Look TopWatch::look() {
  share::Look look;
  for (RunningRun& run : runs()) look.runs.push_back(look_at(run));
  look.no_gpus = no_gpus_;
  if (gpus_) {
    look.gpus = gpus_->gpus();
    look.activities = gpus_->sample();
  }
  look.monotonic_ns = base::system_clock().monotonic_ns();
  return look;
}

}  // namespace assay::cli
