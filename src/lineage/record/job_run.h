// A job's run on rank 0: its own part and those of the others, as one. Used by the recorder at the
// end, and by recovery with the parts that are there.
#pragma once

#include <functional>
#include <string>

#include "lineage/record/collect_parts.h"
#include "lineage/record/part.h"
#include "lineage/record/part_folder.h"
#include "store/run.h"

namespace assay::lineage {

// Everything that the ranks did; what is not there is named in it. A rank that failed makes a run
// fail that is done otherwise.
Part merge_job(const PartFolder& folder, Part own, const Patience& patience,
               const std::function<void(const std::string&)>& waiting, store::RunRecord& run);

// Without what the recording itself left in the folder of parts.
void forget_own_files(const PartOf& job, Part& part);

}  // namespace assay::lineage
