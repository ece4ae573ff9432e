// The few facts about other processes that /proc tells.
#pragma once

#include <sys/types.h>

namespace assay::collect {

// The thread group of a thread; the thread itself if it is gone.
pid_t process_of(pid_t thread);
// 0 if it is gone.
pid_t parent_of(pid_t process);

}  // namespace assay::collect
