// Whether a file that the command gets as standard output or error was opened for it alone
// (`assay run -- sort a > out`), or was handed down: another program has it as its stream and may
// write to it before and after the command (`exec > job.log` in a script). See store/streams.h.
#pragma once

#include <sys/types.h>

namespace assay::lineage {

// `program` is the one that started this program. Some shells (dash) redirect themselves while they
// run a command, and keep what they had before open. So a program with such a copy counts only if
// something was written through the descriptor already.
bool is_handed_down_by(pid_t program, int descriptor);

// Whether the file is the program's standard error.
bool is_standard_error_of(pid_t program, int descriptor);

// Whether something was written, or read, through this descriptor.
bool was_used(int descriptor);

}  // namespace assay::lineage
