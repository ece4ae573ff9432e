// The only write to standard error that progress and log share.
#include "base/stderr_line.h"

#include <unistd.h>

#include <cerrno>

namespace assay::base {

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
