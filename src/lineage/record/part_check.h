// Validates a part that was read from a file. A file can be wrong although its digest is right
// (written by another version or another program), and one part must neither spoil the sums over
// all ranks nor make the store refuse the run.
#pragma once

#include <optional>
#include <string>

#include "lineage/record/part.h"

namespace assay::lineage {

// Completes "rank-3.part: "; nothing: all numbers and names are plausible.
std::optional<std::string> problem_in(const Part& part);

}  // namespace assay::lineage
