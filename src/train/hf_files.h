// Converts checkpoints to and from model folders of the Hugging Face transformers library.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::train {

// Writes config.json and model.safetensors to a folder, which must not have them yet. Weights keep
// their type.
base::Result<void> export_hf(const checkpoint::Checkpoint& from,
                             const std::filesystem::path& folder);

// Writes a folder's weights to RUN/checkpoints/step-0, from which a run can be resumed.
base::Result<std::filesystem::path> import_hf(const std::filesystem::path& folder,
                                              const std::filesystem::path& run);

}  // namespace assay::train
