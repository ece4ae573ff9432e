// The few facts about other processes that /proc tells.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace assay::collect {

// The thread group of a thread; the thread itself if it is gone.
pid_t process_of(pid_t thread);
// 0 if it is gone.
pid_t parent_of(pid_t process);
// The names in a folder that are numbers: processes in /proc, descriptors in /proc/PID/fd. None if
// it cannot be read.
std::vector<int> numbers_in(const std::string& folder);

}  // namespace assay::collect
