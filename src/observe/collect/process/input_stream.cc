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
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (!stream.events_.valid() ||
      ::inotify_add_watch(stream.events_.get(), link.c_str(), IN_ACCESS | IN_ONESHOT) < 0) {
    stream.events_.reset();
    stream.unknown_ = S_ISFIFO(status.st_mode);
  }
  return stream;
}

bool InputStream::was_read() const {
  if (!events_.valid()) return unknown_;
  pollfd events{events_.get(), POLLIN, 0};
  return ::poll(&events, 1, 0) > 0;
}

}  // namespace assay::collect
