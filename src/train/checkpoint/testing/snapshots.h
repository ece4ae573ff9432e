// Snapshots for tests: tensors of every type, whose bytes are made from a number, so that any of
// them can be recognised without keeping it.
#pragma once

#include <cstdint>
#include <string>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/write.h"

namespace assay::checkpoint::testing {

// Bytes without a pattern, the same for the same number.
std::vector<std::byte> noise(std::size_t size, std::uint64_t seed);

// Two parts, "weights" and "optimizer"; the larger `scale`, the more bytes.
Snapshot snapshot_of_step(std::int64_t step, std::int64_t scale = 8);

// Empty if the checkpoint holds exactly this, else what differs.
std::string difference(const Checkpoint& checkpoint, const Snapshot& expected);

}  // namespace assay::checkpoint::testing
