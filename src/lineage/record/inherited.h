// The files that a command inherits open: their stamps just before it starts, and this process's
// copies of them once it runs.
#pragma once

#include <vector>

#include "observe/collect/process/launch.h"

namespace assay::lineage {

// Takes the stamps again, so that every change by the command will show. A file that was written in
// the current tick of the file clock could be written again without showing it, so this waits for
// the next tick, a few hundredths of a second at most. Standard streams are skipped: they count as
// written anyway.
void refresh_stamps(std::vector<collect::Inherited>& files);

// Closes these and makes the standard streams /dev/null: a pipe ends when the command closes it
// only if no other process holds it open.
void release_descriptors(std::vector<int>& descriptors);

}  // namespace assay::lineage
