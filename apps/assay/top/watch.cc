#include "assay/top/watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "store/job_reader.h"
#include "store/location.h"

namespace assay::cli {
namespace {

// The command line of some living process of the job: all there is to say of other projects' jobs.
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

std::map<std::string, TopWatch::Known> TopWatch::known_jobs() {
  std::map<std::string, Known> known;
  if (!store_) return known;
  const auto running = store::list_jobs(*store_, {.status = store::JobStatus::kRunning});
  if (!running) return known;
  for (const store::Job& job : *running) {
    known[job.uid] = {.id = job.id,
                      .title = job.name.empty() ? lineage::command_text(job) : job.name,
                      .spool = job.spool,
                      .alive = store::is_alive(job.collector_pid, job.collector_start_ticks)};
  }
  return known;
}

std::vector<RunningJob> TopWatch::jobs() {
  const std::map<std::string, Known> known = known_jobs();
  std::vector<std::string> uids = collect::GpuCount::uids();
  for (const auto& [uid, job] : known) uids.push_back(uid);
  std::sort(uids.begin(), uids.end());
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  std::vector<RunningJob> jobs;
  for (const std::string& uid : uids) {
    const auto job = known.find(uid);
    auto count = collect::GpuCount::find(uid, job == known.end() ? "" : job->second.spool);
    if (!count) continue;
    const std::vector<bool> living = count->living();
    const bool lives = std::find(living.begin(), living.end(), true) != living.end();
    // What a killed collector left behind, with nobody in it, is no job.
    if (!lives && (job == known.end() || !job->second.alive)) continue;
    RunningJob one{.count = *std::move(count), .uid = uid, .id = {}, .title = {}};
    if (job != known.end()) {
      one.id = job->second.id;
      one.title = job->second.title;
    } else {
      one.title = title_from_processes(one.count, living);
    }
    jobs.push_back(std::move(one));
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const RunningJob& a, const RunningJob& b) {
    return a.id.has_value() != b.id.has_value() ? a.id.has_value() : a.id < b.id;
  });
  return jobs;
}

share::JobLook TopWatch::look_at(RunningJob& job) {
  return {.uid = job.uid,
          .id = job.id,
          .title = job.title,
          .state = share::state_of(job.count.region(), job.count.living())};
}

share::Look TopWatch::look() {
  share::Look look;
  for (RunningJob& job : jobs()) look.jobs.push_back(look_at(job));
  look.no_gpus = no_gpus_;
  if (gpus_) {
    look.gpus = gpus_->gpus();
    look.activities = gpus_->look();
  }
  look.monotonic_ns = base::system_clock().monotonic_ns();
  return look;
}

}  // namespace assay::cli
