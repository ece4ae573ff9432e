// Copies an environment (environments.h) into the copy of the project, where stages cannot be kept
// from writing to the original.
#pragma once

#include <string>

#include "base/result.h"
#include "lineage/reproduce/path_map.h"

namespace assay::lineage {

// The environment of the original and everything below it, at its place in the copy, by reflink
// where the file system has them. Scripts in its bin/ that name the original's folder name the
// copy's: that is how they find their interpreter.
base::Result<void> copy_environment(const std::string& environment, const PathMap& map);

}  // namespace assay::lineage
