#include "lineage/upstream.h"

#include <fmt/format.h>

#include <set>

#include "store/artifacts.h"
#include "store/job_reader.h"
#include "store/steps.h"

namespace assay::lineage {
namespace {

// Depth first, without recursion: a chain may be as long as the project is old.
class Walk {
 public:
  Walk(store::Store& store, store::Producers& producers) : store_(store), producers_(producers) {}

  base::Result<void> add(store::JobId root) {
    ASSAY_TRY_VOID(open(root));
    while (!path_.empty()) {
      Open& top = path_.back();
      if (top.next == top.job.inputs.size()) {
        done_.push_back(std::move(top.job));
        path_.pop_back();
        continue;
      }
      const store::Input& input = top.job.inputs[top.next++];
      ASSAY_TRY(const auto producer, producers_.of(top.job, input));
      if (producer) ASSAY_TRY_VOID(open(producer->job));
    }
    return {};
  }
  std::vector<store::Job> take() { return std::move(done_); }

 private:
  struct Open {
    store::Job job;
    std::size_t next = 0;  // input
  };

  base::Result<void> open(store::JobId id) {
    if (!seen_.insert(id).second) return {};
    ASSAY_TRY(store::Job job, store::load_job(store_, id));
    path_.push_back({std::move(job)});
    return {};
  }

  store::Store& store_;
  store::Producers& producers_;
  std::set<store::JobId> seen_;
  std::vector<Open> path_;
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
  if (!found.empty()) return found.front().job;
  return base::fail(base::usage_error(artifact.path, "no recorded job made this content",
                                      "it came from outside"));
}

base::Result<std::vector<store::Job>> upstream_of(store::Store& store,
                                                  const std::vector<store::JobId>& roots) {
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  Walk walk(store, producers);
  for (const store::JobId root : roots) ASSAY_TRY_VOID(walk.add(root));
  return walk.take();
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
