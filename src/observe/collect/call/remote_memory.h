// Reading the memory of a stopped thread. Used by stopped_call.cc.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::collect {

// 0, or the error: EFAULT for an invalid address (the call will fail with the same), ESRCH when the
// thread has exited, EPERM when the process cannot be read.
int read_remote(pid_t thread, std::uint64_t address, void* into, std::size_t size);

// Writes into the command's memory.
int write_remote(pid_t thread, std::uint64_t address, const void* from, std::size_t size);

// A NUL-terminated string of fewer than `limit` bytes, terminator included in `into`; `length` is
// without it. ENAMETOOLONG when there is no terminator within the limit.
int read_remote_text(pid_t thread, std::uint64_t address, char* into, std::size_t limit,
                     std::size_t& length);

// A NULL-terminated array of pointers to strings (argv), joined with NUL between them and cut at
// `limit` bytes. `pointer_size` is 4 or 8.
int read_remote_arguments(pid_t thread, std::uint64_t address, std::size_t pointer_size,
                          std::size_t limit, std::string& arguments);

}  // namespace assay::collect
