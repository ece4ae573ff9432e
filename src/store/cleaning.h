// Removing runs: `assay pop` the newest, `assay gc` those that nothing refers to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// Removes a run and all that was recorded of it; its stage falls back to its predecessor. A running
// run is a usage error, because its recorder will still write to it.
base::Result<void> remove_run(Store& store, RunId id);

struct GcOptions {
  std::int64_t keep = 0;                       // this many of the newest removable runs stay
  std::optional<std::int64_t> before_unix_ns;  // only runs that began before
  std::int64_t hashes_before_unix_ns = 0;      // cache entries made before are forgotten
  bool dry_run = false;
  // Whether this content is at this path now: the newest run that left it there stays. Not given:
  // files do not matter.
  std::function<bool(const std::string& path, const hash::Digest& content, std::int64_t size)>
      on_disk = {};
};

struct GcReport {
  std::vector<RunRecord> runs;  // removed, or to be removed
  std::int64_t files = 0;       // rows of inputs and outputs
  std::int64_t documents = 0;   // diffs, environments and machines without references
  std::int64_t packages = 0;
  std::int64_t hashes = 0;
  std::int64_t bytes_before = 0;  // the database's file
  std::int64_t bytes_after = 0;
};

// Removes runs that are over, are no stage's current one, have no label, left no labelled content,
// did not make a file that is still there, and made nothing that a remaining run has read: the
// lineage of what remains is complete. Then removes documents, packages and cached hashes without
// references. Safe while others record.
base::Result<GcReport> collect_garbage(Store& store, const GcOptions& options);

}  // namespace assay::store
