// The file that this thread created last: its descriptor is used next, and its content is the
// run's own.
#pragma once

#include <sys/stat.h>

namespace assay::shim {

// `status` is that of a new file.
void remember_created(const struct stat& status);

// Whether the descriptor is that file's. Not if the run has removed or renamed anything since,
// because then the number of a removed file may be another one's.
bool is_last_created(int file);

}  // namespace assay::shim
