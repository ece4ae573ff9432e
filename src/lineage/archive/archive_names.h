// What `assay archive`, `restore` and `gc` do with the archive: find the contents of runs and
// artifacts on disk and archive them, restore them, and remove those that nothing recorded refers
// to.
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

// For a run: its outputs (with `inputs`, also its inputs), except files without a digest and logs
// (store/run_dependencies.h), to which other runs write too. For an artifact: the artifact.
base::Result<std::vector<RecordedContent>> contents_of(store::Store& store,
                                                       const RunOrArtifact& what, bool inputs);

// A path where the content is now; nothing: it is at none of its recorded paths.
base::Result<std::optional<std::string>> find_on_disk(store::Store& store, DiskFiles& files,
                                                      const RecordedContent& content);

struct ArchivedContent {
  RecordedContent content;
  std::optional<Sharing> how;  // none: it was archived already
};
struct ArchiveReport {
  std::vector<ArchivedContent> archived;
  std::vector<RecordedContent> missing;  // not found at any recorded path
  [[nodiscard]] std::int64_t bytes(std::optional<Sharing> how) const;
  [[nodiscard]] std::int64_t count(std::optional<Sharing> how) const;
};
// Looks for each content at its path, then at other recorded paths. An error, before anything is
// archived, if the archive's limit would be exceeded.
base::Result<ArchiveReport> archive_contents(store::Store& store,
                                             const std::vector<RecordedContent>& contents);
// "kept 3 contents: 2 copied (1.20 MiB), 1 was there; the archive takes 4.00 MiB"
std::string cost_text(const ArchiveReport& report, const ArchiveUse& use);

struct RestoredContent {
  RecordedContent content;
  std::filesystem::path path;
  Archive::Restored how = Archive::Restored::kMade;
};
// Each content is restored to its recorded path or, if `root` is not empty, to the same place below
// `root` instead of the project. All targets are checked before the first is written.
struct RestoreRequest {
  std::filesystem::path root = {};
  Archive::Existing existing = Archive::Existing::kKeep;
};
base::Result<std::vector<RestoredContent>> restore_contents(
    store::Store& store, const std::vector<RecordedContent>& contents,
    const RestoreRequest& request);

// Removes archived contents that neither a label nor a run refers to, except runs in `gone`, which
// were or will be removed. With `dry_run` only counts them.
base::Result<ArchiveUse> collect_archive(store::Store& store, const std::vector<store::RunId>& gone,
                                         bool dry_run);

}  // namespace assay::lineage
