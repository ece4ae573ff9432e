#include "lineage/graph/stage_states.h"

#include "lineage/graph/dag_query.h"
#include "lineage/graph/disk_files.h"

namespace assay::lineage {

base::Result<StageStates> load_stage_states(
    store::Store& store, const std::function<bool(const std::string& path)>& unread) {
  ASSAY_TRY(LiveStages stages, load_live_stages(store));
  ASSAY_TRY(DiskFiles files, DiskFiles::open(store));
  DiskQueries queries = files.queries();
  if (unread) {
    queries.content = [&unread, content = std::move(queries.content)](
                          const std::string& path, const hash::Digest& digest, std::int64_t size) {
      return unread(path) ? OnDisk::kSame : content(path, digest, size);
    };
  }
  std::vector<std::vector<Reason>> reasons;
  std::vector<std::vector<Reason>> doubts;
  for (Freshness& found : freshness(stages, queries)) {
    reasons.push_back(std::move(found.reasons));
    doubts.push_back(std::move(found.doubts));
  }
  std::vector<std::vector<Reason>> replaced;
  std::vector<std::vector<std::string>> edited;
  for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
    replaced.push_back(replaced_outputs(stages, stage, queries));
    edited.push_back(edited_outputs(stages, stage, queries));
  }
  // Only a cache: another process may hold the lock.
  static_cast<void>(files.save_hashes());
  return StageStates{std::move(stages), std::move(reasons), std::move(doubts), std::move(replaced),
                     std::move(edited)};
}

}  // namespace assay::lineage
