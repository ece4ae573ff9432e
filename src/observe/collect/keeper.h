// Keeper: the process the user started. It forks the collector, which runs the command, and stays
// in front: passes signals on, waits, and knows the command's status. If the collector is killed
// the keeper takes its place at the gate; if the keeper is killed the collector notices.
//
//   keeper (assay run) ── collector ── the command
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::collect {

// The collector's line to its keeper.
class Channel {
 public:
  explicit Channel(base::UniqueFd socket) : socket_(std::move(socket)) {}
  // Readable when the keeper is gone.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  void started(pid_t command, int listener);
  void ended(int wait_status);
  // When the descriptor is readable: whether the keeper has left on purpose, and recording goes on.
  bool detached();
  // A line that the keeper prints on standard error.
  void say(const std::string& line);

 private:
  base::UniqueFd socket_;
};

struct Kept {
  std::optional<int> wait_status;  // of the command; none: it was not started
  int collector_status = 0;        // what `collect` returned
  bool collector_lost = false;     // it was killed; the command was seen through without it
  pid_t collector = 0;             // which it was, then
  bool detached = false;           // the user would not wait for what the command left running
};

// Runs `collect` in the forked collector and keeps until it is done. `collect` starts the command
// through a Collector with the channel's hooks; it must not print. Without `wait` it returns as
// soon as the command itself has ended, and the collector goes on in the background.
base::Result<Kept> keep(bool wait, const std::function<int(Channel&)>& collect);

}  // namespace assay::collect
