// The text that a job without data trains on: this project's documentation.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace assay::train {

// Writes it as a shard, so that it is read and recorded like any other data. A model of up to 256
// tokens reads bytes; a larger one reads tokens of a vocabulary of its size, trained on the text:
// fewer, if the text does not have as many.
base::Result<void> write_builtin_text(const std::filesystem::path& path, std::int64_t vocabulary);

}  // namespace assay::train
