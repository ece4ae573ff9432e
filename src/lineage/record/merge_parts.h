// merge_parts(): merges the parts that the tasks of a job recorded (part.h), as if one collector
// had observed all ranks. Pure.
//
// A task does not know what the other ranks did: a file that rank 0 created and rank 1 read looks
// like an input of rank 1, a checkpoint that rank 0 commits looks as if it had existed under its
// temporary name, and a file that another rank removed is just gone. This corrects such records
// with what the other ranks recorded.
#pragma once

#include <vector>

#include "lineage/record/part.h"

namespace assay::lineage {

// At least one part; the first one is rank 0's, whose facts (start, host) are the whole's.
Part merge_parts(std::vector<Part> parts);

// Reports a part to `results`, in the order that Results requires.
void replay(Part part, Results& results);

}  // namespace assay::lineage
