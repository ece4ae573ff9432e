// Which checkpoints are kept: the last K, and those whose step is a multiple of M.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"

namespace assay::checkpoint {

struct Retention {
  std::int64_t keep_last = 0;   // 0: all
  std::int64_t keep_every = 0;  // steps; 0: none besides the last
};

// The steps to remove, of steps in ascending order.
std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps, Retention retention);

struct Pruned {
  std::vector<std::int64_t> removed;
  std::vector<std::int64_t> in_use;  // due for removal but being read; a later call removes them
};
// Damaged checkpoints are neither counted nor removed: counting them would cause intact ones to be
// removed, and users should be able to examine them.
base::Result<Pruned> prune(const std::filesystem::path& root, Retention retention);

}  // namespace assay::checkpoint
