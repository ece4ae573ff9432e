// Limits of the control groups of this process: CPU time and memory, versions 1 and 2.
#pragma once

#include <optional>

#include "base/units.h"
#include "machine/file_tree.h"

namespace assay::machine {

struct CgroupLimits {
  std::optional<base::Bytes> memory;
  std::optional<double> cpus;  // CPU seconds per second
};

// The tightest limit of the process's own group and every group above it that can be seen.
CgroupLimits read_cgroup_limits(const FileTree& tree);

}  // namespace assay::machine
