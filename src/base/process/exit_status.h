// Interprets the wait status of a process that ended, as a shell's exit code and as text. The only
// place that does so.
#pragma once

#include <optional>
#include <string>

namespace assay::base {

// The shell's exit codes for programs that cannot be started.
inline constexpr int kExitNotRunnable = 126;
inline constexpr int kExitNotFound = 127;

// The exit code of a process that exited, or 128 + N if signal N killed it.
int shell_exit_code(int wait_status);
// The signal that killed it, if one did.
std::optional<int> signal_of(int wait_status);
// "exited with 1", "was killed by signal 9"
std::string exit_text(int wait_status);
// 126 or 127, for a program that failed to start with this errno.
int shell_exit_code_of_failed_start(int errno_value);

// Ends this process the way the other one ended: with its exit code, or by the same signal.
[[noreturn]] void exit_with_status(int wait_status);

}  // namespace assay::base
