// A checkpoint that several ranks write together, each the tensors it holds, into one hidden folder
// that rank 0 commits:
//
//   rank 0   begin_shared ─ its files ─ its note ─ waits for all notes ─ manifest ─ commit
//   rank 1        └ (name) its files ─ its note ┘
//   rank 2          (name) its files ─ its note ┘
//
// If one rank fails, nothing is committed, and rank 0's error names it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint {

// Called by rank 0 before any rank writes: creates the hidden folder. Every rank, including rank 0,
// then gives its snapshot a RankOfWrite with the folder's name, which the others learn from rank 0;
// only rank 0's has a `folder`.
base::Result<RankOfWrite> begin_shared(const std::filesystem::path& root, std::int64_t step,
                                       std::int64_t ranks);

// Called by every rank, with its share. On rank 0 it returns when the checkpoint is committed, with
// the bytes written by all ranks; on the others when their own files are on disk.
base::Result<Written> write_shared(const std::filesystem::path& root, const Snapshot& snapshot,
                                   const WriteOptions& options = {});

}  // namespace assay::checkpoint
