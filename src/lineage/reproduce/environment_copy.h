// Copies an environment (environments.h) into the copy of the project, for machines on which stages
// cannot be prevented from writing to the original (isolation.h).
#pragma once

#include <string>

#include "base/result.h"
#include "lineage/reproduce/path_map.h"

namespace assay::lineage {

// Copies everything below the environment to its place in the copy, by reflink where the file
// system supports that. In scripts in its bin/, the original's path is replaced by the copy's,
// because they find their interpreter by it.
base::Result<void> copy_environment(const std::string& environment, const PathMap& map);

}  // namespace assay::lineage
