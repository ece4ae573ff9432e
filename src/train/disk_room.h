// Whether the disk has room for the checkpoints that a run is going to write: asked before the
// first step, and before each checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace assay::train {

struct CheckpointsToCome {
  std::int64_t bytes = 0;     // of one, of all ranks
  std::int64_t count = 1;     // until the end of the run
  std::int64_t keep = 0;      // at most so many stay; 0: all
  std::int64_t existing = 0;  // in the folder already

  // How many more there will be at once: the next one is written before the oldest is removed.
  [[nodiscard]] std::int64_t at_once() const;
};

// What an unprivileged process may use.
base::Result<base::Bytes> free_space(const std::filesystem::path& folder);

// Fails if they will not fit. Where all are kept, only if not even one does: people move them away.
// The text says what will not fit then, and is empty otherwise.
base::Result<std::string> check_room(const std::filesystem::path& folder, base::Bytes free,
                                     const CheckpointsToCome& coming);

}  // namespace assay::train
