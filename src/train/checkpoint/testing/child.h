// Child processes for tests: they can be killed, or mount file systems of their own.
#pragma once

#include <sys/types.h>

#include <functional>

namespace assay::checkpoint::testing {

// Forks; the child runs `body` and exits with its result, without destructors or test reports.
pid_t start_child(const std::function<int()>& body);
// The exit code, or 128 + the signal that ended it.
int wait_for(pid_t child);

}  // namespace assay::checkpoint::testing
