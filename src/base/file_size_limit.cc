#include "base/file_size_limit.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/units.h"

namespace assay::base {

std::optional<std::uint64_t> file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

std::string file_size_limit_text() {
  const auto limit = file_size_limit();
  if (!limit) return {};
  return fmt::format("the file-size limit (ulimit -f) is {}",
                     to_text(Bytes(static_cast<std::int64_t>(*limit))));
}

void survive_file_size_limit() {
  struct sigaction action {};
  if (::sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  // A handler, and not SIG_IGN, which an executed program would inherit.
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace assay::base
