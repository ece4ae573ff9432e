// The few facts about other processes that /proc tells.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace assay::collect {

// The thread group of a thread; the thread itself if it is gone.
pid_t process_of(pid_t thread);
// 0 if it is gone.
pid_t parent_of(pid_t process);
// When the process started, in clock ticks since boot (0 if it is gone): a number that, with the
// pid, names a process for good.
std::uint64_t start_ticks_of(pid_t process);

}  // namespace assay::collect
