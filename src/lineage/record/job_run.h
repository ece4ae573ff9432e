// Merges the parts of all ranks into the run that rank 0 records. Used by the recorder at the end,
// and by recovery with the parts that exist.
#pragma once

#include <functional>
#include <string>

#include "lineage/record/collect_parts.h"
#include "lineage/record/part.h"
#include "lineage/record/part_folder.h"
#include "store/run.h"

namespace assay::lineage {

// Everything that the ranks recorded; missing parts are listed in it. If a rank failed, a run that
// is kDone becomes kFailed.
Part merge_job(const PartFolder& folder, Part own, const PartTimeouts& timeouts,
               const std::function<void(const std::string&)>& waiting, store::RunRecord& run);

// Removes from the part the files that the recording itself left in the folder of parts.
void forget_own_files(const PartOf& job, Part& part);

}  // namespace assay::lineage
