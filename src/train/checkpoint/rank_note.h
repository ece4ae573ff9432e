// RankNote: the file that each of several ranks leaves in the hidden folder when its own files are
// on disk, or when it failed. Rank 0 collects the notes into the manifest and removes them.
//
// Notes are files because all ranks write to one folder anyway: they need no connection of their
// own, work the same for threads, processes and nodes, cannot disturb the communication of a step,
// and outlive the rank. On a shared file system a note may take a second to become visible, but
// training does not wait for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint {

struct RankNote {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::int64_t step = 0;
  std::string failure;  // one line; empty: its files are complete and on disk
  std::vector<FileRecord> files = {};
  std::vector<StoredPart> parts = {};  // the pieces in its files
};

// "rank-00003.json"
std::string rank_note_name(std::int64_t rank);

// Renamed into place, so readers see the whole note or none.
base::Result<void> leave_note(const std::filesystem::path& folder, const RankNote& note);
base::Result<RankNote> read_note(const std::filesystem::path& folder, std::int64_t rank);

// What rank 0 waits for.
struct Awaited {
  std::int64_t ranks = 1;
  std::int64_t step = 0;
};

// Returns all notes, by rank. Waits until no file has grown and no note has appeared for
// WriteOptions::patience; the error then names the missing ranks. If all notes are there but some
// report failures, the error names the first such rank.
base::Result<std::vector<RankNote>> collect_notes(const std::filesystem::path& folder,
                                                  const Awaited& awaited,
                                                  const WriteOptions& options);

}  // namespace assay::checkpoint
