// Writes what happened into the log.
#pragma once

#include <sys/stat.h>

#include <cstddef>

#include "observe/shim/shim.h"
#include "observe/wire/record.h"

namespace assay::shim {

// Whether an event of any size can be recorded now: asked before a call is made from the gate,
// because afterwards it is too late to let the collector see it. Other writers may use the space
// meanwhile, so there must be enough for a thousand of them.
bool log_ready();

// The regular file that `file` now is, opened as (directory, path) by this thread. Small functions
// around it keep their stack small; this one takes a little more than PATH_MAX.
void record_open(wire::Op op, int file, const struct stat& status, int directory, const char* path,
                 std::size_t path_length);

// That this process began (kProcess) or ends (kExit, with its wait status). `parent` 0: whoever is
// now.
void record_process(wire::Op op, std::int32_t value, std::int32_t parent);

}  // namespace assay::shim
