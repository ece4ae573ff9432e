// Keeper: the process that the user started. It forks the collector, which runs the command,
// forwards signals and passes the command's wait status to its caller, unconverted. If the
// collector is killed, a guard (a process forked by the keeper) serves the gate in its place, so
// that the command continues unrecorded; if the keeper is killed, the collector ends the recording.
//
//   keeper (assay run) ─┬─ collector ── the command
//                       └─ guard
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::collect {

// The collector's connection to its keeper.
class KeeperChannel {
 public:
  explicit KeeperChannel(base::UniqueFd socket) : socket_(std::move(socket)) {}
  // Readable when the keeper has detached or was killed.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  void started(pid_t command, int listener);
  void ended(int wait_status);
  // When the descriptor is readable: whether the keeper has detached, and recording continues.
  bool detached();
  // Prints a line on the keeper's standard error.
  void print(const std::string& line);

 private:
  base::UniqueFd socket_;
};

struct KeeperResult {
  std::optional<int> wait_status;  // of the command; none: it was not started
  int collector_status = 0;        // what `collect` returned
  bool collector_lost = false;     // it was killed; the command ended without being recorded
  pid_t collector = 0;             // its pid in that case
  bool detached = false;           // returned while processes of the command are still recorded
};

// Runs `collect` in a forked collector process and waits for it. `collect` starts the command
// through a Collector with the channel's hooks; it must not print. Without `wait` this returns as
// soon as the command itself has ended, and the collector continues in the background.
base::Result<KeeperResult> run_under_keeper(bool wait,
                                            const std::function<int(KeeperChannel&)>& collect);

// Ends this process as the command ended; if that is not known, with the collector's status.
[[noreturn]] void exit_with_status(const KeeperResult& result);

}  // namespace assay::collect
