// Writes what happened into the log.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

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

// That a child of this process began (kProcess) or has ended (kExit, with its wait status).
void record_child(wire::Op op, pid_t child, int status, std::int64_t time_ns);

std::int64_t monotonic_ns();

}  // namespace assay::shim
