// Removing checkpoint folders, and cleaning up after writers that were killed. folder_name.h has
// the names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "train/checkpoint/folder_name.h"

namespace assay::checkpoint {

// Removes a folder in which a checkpoint was being written. It is renamed first, so that ranks that
// are still writing cannot add files to it.
base::Result<void> discard_folder(const std::filesystem::path& root, const std::string& name,
                                  std::int64_t step);

// Renames a checkpoint folder to a hidden name and removes it. If the checkpoint has readers, it
// keeps its name and the result is false.
base::Result<bool> remove_folder(const std::filesystem::path& root, const std::string& name,
                                 std::int64_t step);

// Removes what killed writers left behind, restores checkpoints that they had moved aside, and
// finishes interrupted removals. Folders of running processes are not touched.
base::Result<void> sweep(const std::filesystem::path& root);

}  // namespace assay::checkpoint
