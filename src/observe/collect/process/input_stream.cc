#include "observe/collect/process/input_stream.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <string>

namespace assay::collect {

InputStream InputStream::watch(int descriptor) {
  InputStream stream;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return stream;
  if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode)) return stream;
  // At its end already: there is nothing to read.
  pollfd end{descriptor, POLLIN, 0};
  if (::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0 && (end.revents & POLLIN) == 0) {
    return stream;
  }
  stream.events_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // A user may have 128 instances: as many runs at the same time need them all.
  const bool instance = stream.events_.valid();
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (!instance ||
      ::inotify_add_watch(stream.events_.get(), link.c_str(), IN_ACCESS | IN_ONESHOT) < 0) {
    stream.events_.reset();
    if (S_ISFIFO(status.st_mode)) stream.unwatched_ = instance ? State::kRead : State::kUnknown;
  }
  return stream;
}

InputStream::State InputStream::state() const {
  if (!events_.valid()) return unwatched_;
  pollfd events{events_.get(), POLLIN, 0};
  return ::poll(&events, 1, 0) > 0 ? State::kRead : State::kNotRead;
}

}  // namespace assay::collect
