// The record of a run that is about to start: the command with its options, the user, and a uid.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "lineage/record/run.h"
#include "observe/collect/process/launch.h"
#include "store/run.h"

namespace assay::lineage {

base::Result<store::RunRecord> new_run(const RunRequest& request, const collect::Launch& launch,
                                       const std::filesystem::path& directory);

}  // namespace assay::lineage
