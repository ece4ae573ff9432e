// Rank 0's wait for the notes of all ranks (rank_note.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/rank_note.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint {

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
