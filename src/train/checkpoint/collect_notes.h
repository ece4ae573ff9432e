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

// All notes, by rank. Waits as long as files grow or notes appear, and WriteOptions::patience
// longer; then the error names the ranks that are missing. When all have come and some have failed,
// it names the first of these.
base::Result<std::vector<RankNote>> collect_notes(const std::filesystem::path& folder,
                                                  const Awaited& awaited,
                                                  const WriteOptions& options);

}  // namespace assay::checkpoint
