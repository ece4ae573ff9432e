// Writes events into the log.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

#include "observe/shim/shim.h"
#include "observe/wire/record.h"

namespace assay::shim {

// Whether an event of any size can be recorded now. Checked before a call is made from the gate's
// instruction, because the collector does not see such a call. Other writers may take space in
// between, so there must be enough for a thousand of them.
bool log_ready();

// `file` is a regular file that this thread has opened as (directory, path). Uses a little more
// than PATH_MAX bytes of stack, so that its callers need not.
void record_open(wire::RecordOp op, int file, const struct stat& status, int directory,
                 const char* path, std::size_t path_length);

// The same for a name without an open file (kList, kAbsent, kQueried), with flags of wire::flag.
// Nothing is recorded if the collector could not interpret the name.
void record_name(wire::RecordOp op, std::uint16_t flags, int directory, const char* path,
                 std::size_t path_length);

// A text that is no path (kNetwork).
void record_text(wire::RecordOp op, const char* text, std::size_t length);

// The bytes transferred so far over a connection to the address in `text`. The record's stamp holds
// the connection as the inode, and the bytes as size (received) and modification time (sent).
void record_traffic(const char* text, std::size_t length, std::uint64_t connection,
                    std::uint64_t received, std::uint64_t sent);

// A child of this process was created (kProcess) or has ended (kExit, with its wait status).
void record_child(wire::RecordOp op, pid_t child, int status, std::int64_t time_ns);

std::int64_t monotonic_ns();

}  // namespace assay::shim
