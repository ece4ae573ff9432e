// Removing runs: `assay pop` removes the newest, `assay gc` those that nothing refers to.
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

// Removes a run and everything recorded about it; its stage falls back to the stage's previous run.
// A running run is a usage error, because its recorder will still write to it.
base::Result<void> remove_run(Store& store, RunId id);

struct GcRequest {
  std::int64_t keep = 0;                       // keep this many of the newest removable runs
  std::optional<std::int64_t> before_unix_ns;  // remove only runs that began before this
  std::int64_t hashes_before_unix_ns = 0;      // remove cache entries older than this
  bool dry_run = false;
  // Whether this content is at this path now; if so, the newest run that left it there is kept.
  // Empty: files on disk do not protect runs.
  std::function<bool(const std::string& path, const hash::Digest& content, std::int64_t size)>
      on_disk = {};
};

struct GcReport {
  std::vector<RunRecord> runs;  // removed, or to be removed
  std::int64_t files = 0;       // rows of inputs and outputs
  std::int64_t documents = 0;   // diffs, environments and machines without references
  std::int64_t packages = 0;
  std::int64_t hashes = 0;
  std::int64_t bytes_before = 0;  // size of the database file
  std::int64_t bytes_after = 0;
};

// Removes runs that have ended, are not the current run of a stage, have no label, left no labelled
// content, left no file that is still on disk, and made nothing that a remaining run has read; so
// the lineage of what remains is complete. Then removes documents, packages and cached hashes
// without references. Safe while other processes record runs.
base::Result<GcReport> collect_garbage(Store& store, const GcRequest& request);

}  // namespace assay::store
