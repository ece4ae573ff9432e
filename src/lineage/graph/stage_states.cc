#include "lineage/graph/stage_states.h"

#include "hash/file.h"
#include "lineage/graph/dag_query.h"
#include "lineage/graph/disk_files.h"
#include "store/artifacts.h"

namespace assay::lineage {
namespace {

base::Result<std::set<std::string>> edited_outputs(
    store::Store& store, const std::vector<std::vector<Reason>>& reasons) {
  std::set<std::string> edited;
  for (const std::vector<Reason>& of_stage : reasons) {
    for (const Reason& reason : of_stage) {
      if (reason.cause != Cause::kOutputChanged) continue;
      const auto now = hash::hash_file(reason.path);
      if (!now) continue;  // no regular file, or not readable
      ASSAY_TRY(const auto runs, store::producers_of(store, now->digest, 1));
      if (runs.empty()) edited.insert(reason.path);
    }
  }
  return edited;
}

}  // namespace

base::Result<StageStates> load_stage_states(
    store::Store& store, const std::function<bool(const std::string& path)>& unread) {
  ASSAY_TRY(LiveStages stages, load_live_stages(store));
  ASSAY_TRY(DiskFiles files, DiskFiles::open(store));
  auto reasons = staleness(
      stages, [&](const std::string& path, const hash::Digest& content, std::int64_t size) {
        return unread && unread(path) ? OnDisk::kSame : files.check(path, content, size);
      });
  // Only a cache: another process may hold the lock.
  static_cast<void>(files.save_hashes());
  ASSAY_TRY(std::set<std::string> edited, edited_outputs(store, reasons));
  return StageStates{std::move(stages), std::move(reasons), std::move(edited)};
}

}  // namespace assay::lineage
