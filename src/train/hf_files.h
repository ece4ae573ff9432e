// Checkpoints to and from the folders that the Hugging Face library reads and writes.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::train {

// Writes config.json and model.safetensors into a folder that must not hold them yet. Weights keep
// their type.
base::Result<void> export_hf(const checkpoint::Checkpoint& from,
                             const std::filesystem::path& folder);

// Makes RUN/checkpoints/step-0 of a folder's weights: a run that is resumed begins with them.
base::Result<std::filesystem::path> import_hf(const std::filesystem::path& folder,
                                              const std::filesystem::path& run);

}  // namespace assay::train
