#include "lineage/graph/upstream.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "store/artifacts.h"
#include "store/run_dependencies.h"
#include "store/run_reader.h"
#include "store/stages.h"

namespace assay::lineage {
namespace {

// The producers found so far.
class Upstream {
 public:
  Upstream(store::Store& store, store::Producers& producers, std::string artifact)
      : store_(store), producers_(producers), artifact_(std::move(artifact)) {}

  // Adds `roots` and their producers in the order in which they ran, so that every stage finds its
  // files as it did then, whatever later stages do to them. Only a producer that overlapped its
  // reader in time is moved before it.
  base::Result<void> add(const std::vector<store::RunId>& roots) {
    std::set<store::RunId> members(roots.begin(), roots.end());
    std::vector<store::RunId> todo = roots;
    while (!todo.empty()) {
      const store::RunId id = todo.back();
      todo.pop_back();
      ASSAY_TRY_VOID(load(id));
      for (const store::RunId producer : producers_of_[id]) {
        if (members.insert(producer).second) todo.push_back(producer);
      }
    }
    for (const store::RunId id : members) place(id);
    return {};
  }
  std::vector<store::RunRecord> take() { return std::move(done_); }

 private:
  base::Result<void> load(store::RunId id) {
    if (runs_.contains(id)) return {};
    ASSAY_TRY(store::RunRecord run, store::load_run(store_, id));
    std::set<store::RunId>& producers = producers_of_[id];
    for (const store::Input& input : store::dependencies_for(run, artifact_)) {
      ASSAY_TRY(const auto producer, producers_.of(run, input));
      if (producer) producers.insert(producer->run);
    }
    runs_.emplace(id, std::move(run));
    return {};
  }

  // Depth first, without recursion, because a chain of runs may be very long.
  void place(store::RunId root) {
    std::vector<std::pair<store::RunId, bool>> path = {{root, false}};
    while (!path.empty()) {
      const auto [id, opened] = path.back();
      if (opened) {
        path.pop_back();
        done_.push_back(std::move(runs_.at(id)));
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
  std::map<store::RunId, store::RunRecord> runs_;
  std::map<store::RunId, std::set<store::RunId>> producers_of_;
  std::set<store::RunId> placed_;  // or on the stack
  std::vector<store::RunRecord> done_;
};

}  // namespace

base::Result<store::RunId> producer_of(store::Store& store, const Artifact& artifact) {
  if (artifact.is_folder) {
    ASSAY_TRY(const std::vector<store::FileAt> files, store::files_below(store, artifact.path));
    store::RunId newest = 0;
    for (const store::FileAt& file : files) newest = std::max(newest, file.run);
    return newest;
  }
  if (!artifact.blake3) {
    return base::fail(base::usage_error(artifact.path,
                                        "was deleted by the last run that changed it",
                                        "give an earlier content by its hash"));
  }
  ASSAY_TRY(const std::vector<store::FileAt> found, store::producers_of(store, *artifact.blake3));
  for (const store::FileAt& file : found) {
    if (file.path == artifact.path) return file.run;
  }
  // The same content elsewhere: by chance, or by an unrecorded copy.
  return base::fail(base::usage_error(
      artifact.path, "no recorded run made this content here",
      found.empty() ? "it came from outside"
                    : fmt::format("it came from outside; run {} left the same content at {}",
                                  found.front().run, found.front().path)));
}

base::Result<std::vector<store::RunId>> producers_of(store::Store& store,
                                                     const Artifact& artifact) {
  if (!artifact.is_folder) {
    ASSAY_TRY(const store::RunId producer, producer_of(store, artifact));
    return std::vector{producer};
  }
  ASSAY_TRY(const std::vector<store::FileAt> files, store::files_below(store, artifact.path));
  std::set<store::RunId> runs;
  for (const store::FileAt& file : files) runs.insert(file.run);
  return std::vector(runs.begin(), runs.end());
}

base::Result<std::vector<store::RunRecord>> upstream_of(store::Store& store,
                                                        const std::vector<store::RunId>& roots,
                                                        const std::string& artifact,
                                                        const std::vector<store::RunId>& builds) {
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  Upstream upstream(store, producers, artifact);
  for (const store::RunId build : builds) ASSAY_TRY_VOID(upstream.add({build}));
  ASSAY_TRY_VOID(upstream.add(roots));
  return upstream.take();
}

base::Result<std::vector<store::RunId>> build_runs_before(store::Store& store,
                                                          const store::RunRecord& run) {
  ASSAY_TRY(const std::vector<store::RunRecord> live, store::live_runs(store));
  std::vector<store::RunId> builds;
  for (const store::RunRecord& one : live) {
    if (one.build && one.id != run.id && one.started_unix_ns <= run.started_unix_ns) {
      builds.push_back(one.id);
    }
  }
  return builds;
}

}  // namespace assay::lineage
