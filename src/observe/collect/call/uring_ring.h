// The submission queue of an io_uring that another process is about to submit from. The ring's
// memory belongs to its descriptor, so a copy of the descriptor is enough to map it here.
#pragma once

#include <linux/io_uring.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace assay::collect {

// The flags of io_uring_setup that determine a ring's memory layout.
std::uint32_t layout_flags(std::uint32_t setup_flags);

// Whether rings with these setup flags can be followed: not if a kernel thread takes the entries
// without a system call, or if they are in the program's own memory.
bool is_followed(std::uint32_t setup_flags);

// Whether this kernel supports these setup flags: programs try newer flags first and fall back.
bool kernel_makes(std::uint32_t setup_flags);

// The entries that a call of io_uring_enter(descriptor, to_submit, …) will submit. Nothing: they
// cannot be read.
std::optional<std::vector<io_uring_sqe>> entries_to_submit(pid_t process, int descriptor,
                                                           std::uint32_t layout,
                                                           std::uint32_t to_submit);

// The descriptors of a process that are rings, found by examining all its open descriptors.
std::vector<int> rings_of(pid_t process);
bool is_ring(pid_t process, int descriptor);

}  // namespace assay::collect
