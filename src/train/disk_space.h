// Whether the disk has room for the checkpoints that a run will write; checked before the first
// step and before each checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace assay::train {

struct FutureCheckpoints {
  std::int64_t bytes = 0;     // of one checkpoint, over all ranks
  std::int64_t count = 1;     // written until the end of the run
  std::int64_t keep = 0;      // at most this many are kept; 0: all
  std::int64_t existing = 0;  // already in the folder

  // The most further checkpoints that exist at once: one is written before the oldest is removed.
  [[nodiscard]] std::int64_t at_once() const;
};

// Space available to unprivileged processes.
base::Result<base::Bytes> free_space(const std::filesystem::path& folder);

// Fails if the checkpoints will not fit; if all are kept, only if not even one fits, because users
// may move them away during the run. In that case the result is a warning, and otherwise empty.
base::Result<std::string> check_disk_space(const std::filesystem::path& folder, base::Bytes free,
                                           const FutureCheckpoints& future);

}  // namespace assay::train
