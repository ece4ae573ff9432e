// The submission queue of an io_uring that another process is about to submit from. The ring's
// memory belongs to its descriptor, so a copy of the descriptor is enough to map it here.
#pragma once

#include <linux/io_uring.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace assay::collect {

// The flags of io_uring_setup that decide how a ring lies in memory.
std::uint32_t layout_flags(std::uint32_t setup_flags);

// Whether rings with these setup flags are followed: false for those whose entries cannot be read
// (a kernel thread takes them without a call, or they are in memory of the program's own).
bool is_followed(std::uint32_t setup_flags);

// Whether this kernel makes rings with these setup flags: programs try new ones first, and others
// then.
bool kernel_makes(std::uint32_t setup_flags);

// The entries that a call of io_uring_enter(descriptor, to_submit, …) will submit. Nothing: they
// cannot be read.
std::optional<std::vector<io_uring_sqe>> entries_to_submit(pid_t process, int descriptor,
                                                           std::uint32_t layout,
                                                           std::uint32_t to_submit);

// The descriptors of a process that are rings. Looks at all that it has open.
std::vector<int> rings_of(pid_t process);
bool is_ring(pid_t process, int descriptor);

}  // namespace assay::collect
