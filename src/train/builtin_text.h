// The text that a job without data trains on: this project's documentation.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace assay::train {

// Writes the text as a shard, so that it is read and recorded like any other data. Models with a
// vocabulary of up to 256 read bytes; for larger ones a tokenizer with that vocabulary is trained
// on the text (with fewer tokens if the text does not yield that many).
base::Result<void> write_builtin_text(const std::filesystem::path& path, std::int64_t vocabulary);

}  // namespace assay::train
