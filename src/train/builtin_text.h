// The text of a job that names no data: this project's documentation, as bytes.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace assay::train {

// Writes it as a shard of byte tokens, so that it is read, and seen, as any other data.
base::Result<void> write_builtin_text(const std::filesystem::path& path);

}  // namespace assay::train
