// What `assay archive`, `restore` and `gc` do with the archive: contents of runs and files found on
// disk and kept, put back, and removed when nothing recorded refers to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hash/digest.h"
#include "lineage/archive/archive.h"
#include "lineage/graph/disk_files.h"
#include "lineage/graph/resolve.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// A content, and the path at which it was recorded.
struct RecordedContent {
  std::string path;
  hash::Digest blake3;
  std::int64_t size = 0;
};

// Of a run, what it left (and, if `inputs`, what it read), except logs (store/run_dependencies.h),
// to which others write as well, and what has no digest; of an artifact, itself.
base::Result<std::vector<RecordedContent>> contents_of(store::Store& store,
                                                       const RunOrArtifact& what, bool inputs);

// A path on which the content is now; nothing: none that was recorded has it.
base::Result<std::optional<std::string>> find_on_disk(store::Store& store, DiskFiles& files,
                                                      const RecordedContent& content);

struct ArchivedContent {
  RecordedContent content;
  std::optional<Sharing> how;  // none: it was there already
};
struct ArchiveReport {
  std::vector<ArchivedContent> archived;
  std::vector<RecordedContent> missing;  // they are nowhere on disk
  [[nodiscard]] std::int64_t bytes(std::optional<Sharing> how) const;
  [[nodiscard]] std::int64_t count(std::optional<Sharing> how) const;
};
// Looks for each at its path, then at other recorded ones. An error, before anything is kept, when
// the archive's limit does not allow it.
base::Result<ArchiveReport> archive_contents(store::Store& store,
                                             const std::vector<RecordedContent>& contents);
// "kept 3 contents: 2 copied (1.20 MiB), 1 was there; the archive takes 4.00 MiB"
std::string cost_text(const ArchiveReport& report, const ArchiveUse& use);

struct RestoredContent {
  RecordedContent content;
  std::filesystem::path path;
  Archive::Restored how = Archive::Restored::kMade;
};
// Where contents are put: each at its recorded path or, below `root` instead of the project, if
// that is not empty. All are checked before the first is written.
struct RestoreOptions {
  std::filesystem::path root = {};
  Archive::Existing existing = Archive::Existing::kKeep;
};
base::Result<std::vector<RestoredContent>> restore_contents(
    store::Store& store, const std::vector<RecordedContent>& contents,
    const RestoreOptions& options);

// Contents that no run but these, which are gone or will be, and no label refers to. Removes them
// unless `dry_run`.
base::Result<ArchiveUse> collect_archive(store::Store& store, const std::vector<store::RunId>& gone,
                                         bool dry_run);

}  // namespace assay::lineage
