// RankNote: what one of several ranks leaves in the hidden folder when its files are on disk, or
// when it failed. Rank 0 collects the notes into the manifest and removes them.
//
// A file, because all ranks write into one folder anyway: it needs no connection of its own, works
// the same for threads, processes and nodes, cannot disturb the exchanges of a step, and what it
// says survives the rank. An answer by file may take a file system's second to be seen; training
// does not wait for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/manifest.h"

namespace assay::checkpoint {

struct RankNote {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::int64_t step = 0;
  std::string failure;  // a line; empty: its files are complete and on disk
  std::vector<FileRecord> files = {};
  std::vector<StoredPart> parts = {};  // the pieces in its files
};

// "rank-00003.json"
std::string rank_note_name(std::int64_t rank);

// Appears whole, by a rename.
base::Result<void> leave_note(const std::filesystem::path& folder, const RankNote& note);
base::Result<RankNote> read_note(const std::filesystem::path& folder, std::int64_t rank);

}  // namespace assay::checkpoint
