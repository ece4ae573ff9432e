// merge_parts(): the parts that the tasks of a job recorded (part.h) as one: as if one collector
// had seen all ranks. Pure.
//
// A task sees other ranks' files as those of strangers: what rank 0 created and rank 1 read looks
// like an input of rank 1, a checkpoint that rank 0 commits looks as if it had been there under its
// hidden name, and a file that another rank removes is gone. Here the other ranks are known, and so
// is what they did.
#pragma once

#include <vector>

#include "lineage/record/part.h"

namespace assay::lineage {

// At least one part; the first one is rank 0's, whose facts (start, host) are the whole's.
Part merge_parts(std::vector<Part> parts);

// Reports everything of a part to the receiver, in the order that Results asks for.
void replay(Part part, Results& results);

}  // namespace assay::lineage
