// Snapshots for tests: tensors of every type, with contents generated from a seed, so that tests
// can check them without keeping a copy.
#pragma once

#include <cstdint>
#include <string>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint::testing {

// Pseudo-random bytes, the same for the same seed.
std::vector<std::byte> noise(std::size_t size, std::uint64_t seed);

// Two parts, "weights" and "optimizer"; the larger `scale`, the more bytes.
Snapshot snapshot_of_step(std::int64_t step, std::int64_t scale = 8);

// The same state divided among `ranks` ranks: every tensor is cut into random pieces, each held by
// one rank. Some ranks may hold nothing.
std::vector<Snapshot> spread(const Snapshot& whole, int ranks, std::uint64_t seed);

// Every rank writes its snapshot, each on its own thread. Returns rank 0's result.
base::Result<Written> write_by_ranks(const std::filesystem::path& root,
                                     std::vector<Snapshot> snapshots,
                                     const WriteOptions& options = {});

// Empty if the checkpoint has exactly these contents, else a description of the difference.
std::string difference(const Checkpoint& checkpoint, const Snapshot& expected);

}  // namespace assay::checkpoint::testing
