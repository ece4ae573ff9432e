// Starting the observed command: fork, what the collector needs done in the child, exec. Not
// base::Process, because posix_spawn can neither install a seccomp filter nor call ptrace() in the
// child, restores neither limits nor signals as this program found them, and cannot be awaited by a
// collector that has to let the exec itself through.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/process/collector.h"

namespace assay::collect {

struct Launched {
  pid_t pid = 0;
  // Readable when it is decided whether the program runs: see exec_failure().
  base::UniqueFd exec_result;
};

// Returns as soon as the child exists; it may still be on its way to exec, and it may need the
// collector to get there (exec itself is a stopped call). `in_child` runs after fork, before exec,
// with the signals still blocked: system calls only. If it returns false the child ends there and
// errno tells why. `environment` replaces launch.environment.
base::Result<Launched> launch(const Launch& launch, const std::function<bool()>& in_child);

// Waits until the program runs (nothing) or could not be started (why). `pid` is not waited for.
// kUsage: there is no such program; kNo: it cannot be run; kUnfit: it was not tried.
std::optional<base::Error> exec_failure(const Launch& launch, int exec_result);

// The same in the rounds of a poll loop.
class ExecWatch {
 public:
  // Both must outlive it.
  ExecWatch(const Launch& launch, const Launched& child) : launch_(launch), child_(child) {}

  // To be polled; -1 when it is decided.
  [[nodiscard]] int descriptor() const { return decided_ ? -1 : child_.exec_result.get(); }
  // True once, when the program has begun. An error if it could not; then the child has ended and
  // been waited for.
  base::Result<bool> began();

 private:
  const Launch& launch_;
  const Launched& child_;
  bool decided_ = false;
};

// Of a child that ended before it sent the gate's listener; it is waited for.
base::Error gate_failure(const Launch& launch, const Launched& child);

// The signal dispositions and mask that the program was started with, before keeper and collector
// changed them for themselves: the command gets these.
void remember_signals();

// Frees this process from the limits on resources that were meant for the command, as far as it is
// allowed: what we write must neither fail by them nor end us. launch() puts them back.
void raise_limits();

// Without any of this: makes the calling process the command, as it would be without us. Returns
// only if that fails, and why.
base::Error become(const std::vector<std::string>& words);

}  // namespace assay::collect
