// Open files that a command inherits: their stamps just before it starts, and closing this
// process's copies of the descriptors once it runs.
#pragma once

#include <vector>

#include "observe/collect/process/launch.h"

namespace assay::lineage {

// Takes the stamps again, so that every change by the command changes a stamp. A file written in
// the current tick of the file clock could be written again with the same stamp, so this waits for
// the next tick (some 10 ms at most). Standard streams are skipped, because they count as written
// anyway.
void refresh_stamps(std::vector<collect::Inherited>& files);

// Closes these and makes the standard streams /dev/null: the reader of a pipe sees its end only
// when no process holds it open.
void release_descriptors(std::vector<int>& descriptors);

}  // namespace assay::lineage
