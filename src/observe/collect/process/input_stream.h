// InputStream: whether a run read the pipe or socket that is its standard input. What comes through
// one is in no file, so it is not recorded. A command that inherits one and does not read it (as
// under cron or ssh) has missed nothing.
#pragma once

#include "base/unique_fd.h"

namespace assay::collect {

class InputStream {
 public:
  // Watches `descriptor`, if it is a pipe or a socket. Call before the command starts, with the
  // descriptor still open. The kernel reports the first read that returns data, by whichever
  // process and call (inotify); that costs the command nothing.
  static InputStream watch(int descriptor);

  enum class State {
    kNotRead,
    kRead,     // or it is another user's pipe, which cannot be watched, and was not at its end
    kUnknown,  // a pipe that was not at its end, and there was no inotify instance to watch it
  };
  [[nodiscard]] State state() const;

 private:
  base::UniqueFd events_;
  State unwatched_ = State::kNotRead;  // without events_
};

}  // namespace assay::collect
