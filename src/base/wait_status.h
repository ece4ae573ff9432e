// What waitpid() tells, as the one number that a shell has for it.
#pragma once

#include <sys/wait.h>

namespace assay::base {

// The exit code of a process that ended, or 128 + N if signal N killed it.
inline int shell_exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace assay::base
