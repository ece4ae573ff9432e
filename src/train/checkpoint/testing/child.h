// A process of a test's own, that can be killed or that mounts what it likes.
#pragma once

#include <sys/types.h>

#include <functional>

namespace assay::checkpoint::testing {

// Forks; the child runs `body` and exits with what it returns, without destructors or reports.
pid_t start_child(const std::function<int()>& body);
// Its exit code, or 128 + the signal that ended it.
int wait_for(pid_t child);

}  // namespace assay::checkpoint::testing
