// The state of files that the command is passed open, taken so that every change of them shows.
#pragma once

#include <vector>

#include "observe/collect/process/inherited.h"

namespace assay::lineage {

// Takes the stamps anew, just before the command starts. A file that was written to in the same
// tick of the file system's clock could be written to again without showing it, so this waits for
// the next one, a few hundredths of a second at most; what is racy even then is marked so. Only
// files that are writable through a descriptor other than the standard streams are looked at: what
// the standard streams lead to counts as written anyway.
void take_stamps(std::vector<collect::Inherited>& files);

}  // namespace assay::lineage
