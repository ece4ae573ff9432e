#include "lineage/graph/upstream.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "store/artifacts.h"
#include "store/job_reader.h"
#include "store/needs.h"
#include "store/steps.h"

namespace assay::lineage {
namespace {

// Who made what, as far as it has been asked for.
class Upstream {
 public:
  Upstream(store::Store& store, store::Producers& producers, std::string artifact)
      : store_(store), producers_(producers), artifact_(std::move(artifact)) {}

  // What `root` came from and has not been added yet, in the order in which it ran: then every step
  // finds its files as it found them, whatever other steps make of them later. Only a producer that
  // ran at the same time as its reader is put before it.
  base::Result<void> add(store::JobId root) {
    std::set<store::JobId> members = {root};
    std::vector<store::JobId> todo = {root};
    while (!todo.empty()) {
      const store::JobId id = todo.back();
      todo.pop_back();
      ASSAY_TRY_VOID(look(id));
      for (const store::JobId producer : producers_of_[id]) {
        if (members.insert(producer).second) todo.push_back(producer);
      }
    }
    for (const store::JobId id : members) place(id);
    return {};
  }
  std::vector<store::Job> take() { return std::move(done_); }

 private:
  base::Result<void> look(store::JobId id) {
    if (jobs_.contains(id)) return {};
    ASSAY_TRY(store::Job job, store::load_job(store_, id));
    std::set<store::JobId>& producers = producers_of_[id];
    std::vector<store::Input> needs = store::needs_of(job, store::Logs::kNo);
    // What a log held before matters only to who asks for the log.
    for (const store::Output& output : job.outputs) {
      if (output.before && output.path == artifact_)
        needs.push_back({artifact_, output.before, -1});
    }
    for (const store::Input& input : needs) {
      ASSAY_TRY(const auto producer, producers_.of(job, input));
      if (producer) producers.insert(producer->job);
    }
    jobs_.emplace(id, std::move(job));
    return {};
  }

  // Depth first, without recursion: a chain may be as long as the project is old.
  void place(store::JobId root) {
    std::vector<std::pair<store::JobId, bool>> path = {{root, false}};
    while (!path.empty()) {
      const auto [id, opened] = path.back();
      if (opened) {
        path.pop_back();
        done_.push_back(std::move(jobs_.at(id)));
        continue;
      }
      path.back().second = true;
      if (!placed_.insert(id).second) {
        path.pop_back();
        continue;
      }
      const auto& producers = producers_of_[id];
      for (auto producer = producers.rbegin(); producer != producers.rend(); ++producer) {
        path.emplace_back(*producer, false);
      }
    }
  }

  store::Store& store_;
  store::Producers& producers_;
  std::string artifact_;
  std::map<store::JobId, store::Job> jobs_;
  std::map<store::JobId, std::set<store::JobId>> producers_of_;
  std::set<store::JobId> placed_;  // or on the way
  std::vector<store::Job> done_;
};

}  // namespace

base::Result<store::JobId> producer_of(store::Store& store, const Artifact& artifact) {
  if (!artifact.blake3) {
    return base::fail(base::usage_error(artifact.path,
                                        "was deleted by the last job that touched it",
                                        "name an earlier content by its hash"));
  }
  ASSAY_TRY(const std::vector<store::FileAt> found, store::producers_of(store, *artifact.blake3));
  for (const store::FileAt& file : found) {
    if (file.path == artifact.path) return file.job;
  }
  // Alike by chance or by a copy that nobody saw: not made there.
  return base::fail(base::usage_error(
      artifact.path, "no recorded job made this content here",
      found.empty() ? "it came from outside"
                    : fmt::format("it came from outside; job {} left the same content at {}",
                                  found.front().job, found.front().path)));
}

base::Result<std::vector<store::Job>> upstream_of(store::Store& store,
                                                  const std::vector<store::JobId>& roots,
                                                  const std::string& artifact) {
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  Upstream upstream(store, producers, artifact);
  for (const store::JobId root : roots) ASSAY_TRY_VOID(upstream.add(root));
  return upstream.take();
}

base::Result<std::vector<store::JobId>> build_jobs_before(store::Store& store,
                                                          const store::Job& job) {
  ASSAY_TRY(const std::vector<store::Job> live, store::live_jobs(store));
  std::vector<store::JobId> builds;
  for (const store::Job& one : live) {
    if (one.build && one.id != job.id && one.started_unix_ns <= job.started_unix_ns) {
      builds.push_back(one.id);
    }
  }
  return builds;
}

}  // namespace assay::lineage
