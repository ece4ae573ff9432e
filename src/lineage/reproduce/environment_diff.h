// How this machine differs from the one a run was recorded on: packages, system, CPU, GPUs, driver.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "store/run.h"

namespace assay::lineage {

struct EnvironmentDifference {
  std::string what;  // "pip numpy", "driver", "cpu"
  std::string recorded;
  std::string here;  // "not installed", "unknown"
};

// `machine_here` is machine_facts() of record/context.h.
std::vector<EnvironmentDifference> environment_differences(
    const std::vector<store::RunRecord>& runs, const base::Json& machine_here);

}  // namespace assay::lineage
