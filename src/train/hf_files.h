// Converts checkpoints to and from model folders of the Hugging Face transformers library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/checkpoint.h"

namespace assay::train {

// Writes config.json, model.safetensors and, if the checkpoint has a tokenizer, its files to a
// folder that must not contain them yet. Weights keep their type. Returns the names of the files.
// Of a damaged checkpoint nothing is written.
base::Result<std::vector<std::string>> export_hf(const checkpoint::Checkpoint& from,
                                                 const std::filesystem::path& folder);

struct ImportedHf {
  std::filesystem::path checkpoint = {};
  std::filesystem::path job;        // a job file that trains the model further
  std::string tokenizer_note = {};  // why the folder's tokenizer was not imported; empty if it was
};
// Writes a folder's weights, and its tokenizer.json if it is supported, to RUN/checkpoints/step-0,
// from which a run can be resumed, and RUN/job.toml with which it can. A folder that contradicts
// itself is refused (hf_folder.h), as is a run that has later checkpoints.
base::Result<ImportedHf> import_hf(const std::filesystem::path& folder,
                                   const std::filesystem::path& run);

}  // namespace assay::train
