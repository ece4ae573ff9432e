// Starting the observed command: fork, preparation by the collector in the child, exec. Not
// base::Process: posix_spawn can neither install a seccomp filter nor call ptrace() in the child,
// does not restore the limits and signals that this program was started with, and blocks until
// exec, which a collector must itself let continue.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

struct Launched {
  pid_t pid = 0;
  // Readable when the exec has succeeded or failed: see exec_failure().
  base::UniqueFd exec_result;
};

// Returns as soon as the child exists; it may not have called exec yet, and may need the collector
// for that (exec itself is a stopped call). `in_child` runs between fork and exec, with signals
// blocked, and may only make system calls. If it returns false the child exits and errno is the
// reason.
base::Result<Launched> launch(const Launch& launch, const std::function<bool()>& in_child);

// Waits until the program runs (returns nothing) or could not be started (returns why). Does not
// wait for the child to exit. kUsage: there is no such program; kNo: it cannot be run; kUnfit: exec
// was not tried.
std::optional<base::Error> exec_failure(const Launch& launch, int exec_result);

// The same for a poll loop.
class ExecWatch {
 public:
  // Both must outlive it.
  ExecWatch(const Launch& launch, const Launched& child) : launch_(launch), child_(child) {}

  // To be polled; -1 once the result is known.
  [[nodiscard]] int descriptor() const { return decided_ ? -1 : child_.exec_result.get(); }
  // True once, when the program has started. An error if it could not be started; the child has
  // then been waited for.
  base::Result<bool> began();

 private:
  const Launch& launch_;
  const Launched& child_;
  bool decided_ = false;
};

// For a child that ended before it sent the gate's listener; waits for it.
base::Error gate_failure(const Launch& launch, const Launched& child);

// Saves the signal dispositions and mask that this program was started with, before keeper and
// collector change them: the command gets these.
void save_signals();

// Lifts resource limits of this process that are meant for the command, as far as permitted:
// writing the log must not fail because of them. launch() restores them.
void raise_limits();

// Replaces the calling process with the command, unobserved. Returns only if that fails, and why.
base::Error replace_with_command(const std::vector<std::string>& command);

}  // namespace assay::collect
