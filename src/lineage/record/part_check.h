// What is wrong with a part that comes from a file. Files of other nodes can be damaged in ways
// that their digest does not show (a program of another version, or of somebody else, made them),
// and what one part says must neither spoil the sums of all nor make the store refuse the run.
#pragma once

#include <optional>
#include <string>

#include "lineage/record/part.h"

namespace assay::lineage {

// Completes "rank-3.part: "; nothing: every number and name in it is one that a rank can have.
std::optional<std::string> problem_in(const Part& part);

}  // namespace assay::lineage
