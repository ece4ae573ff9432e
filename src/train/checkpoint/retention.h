// Which checkpoints stay: the last K, and every one whose step is a multiple of M.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"

namespace assay::checkpoint {

struct Retention {
  std::int64_t keep_last = 0;   // 0: all of them stay
  std::int64_t keep_every = 0;  // steps; 0: none besides the last
};

// Of steps in ascending order, those that go.
std::vector<std::int64_t> superfluous(std::span<const std::int64_t> steps, Retention retention);

struct Pruned {
  std::vector<std::int64_t> removed;
  std::vector<std::int64_t> in_use;  // would go, but someone reads them; they go another time
};
// Damaged checkpoints neither count nor go: removing a good one for their sake would be a loss, and
// what became of them is for a person to see.
base::Result<Pruned> prune(const std::filesystem::path& root, Retention retention);

}  // namespace assay::checkpoint
