#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace assay::base {

std::optional<std::size_t> terminal_columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

void write_stderr(std::string_view text) {
  const int saved_errno = errno;
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  errno = saved_errno;
}

}  // namespace assay::base
