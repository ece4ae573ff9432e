#include "base/draft.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file.h"
#include "base/unique_fd.h"

namespace assay::base {

Result<std::filesystem::path> write_draft(const std::filesystem::path& path, std::string_view text,
                                          mode_t mode) {
  // Never another's file, nor what a killed process with this number left.
  constexpr int kMostNames = 100;
  UniqueFd file;
  std::string draft;
  for (int i = 0; i < kMostNames && !file.valid(); ++i) {
    draft = fmt::format("{}.{}", path.string(), ::getpid()) + (i > 0 ? fmt::format(".{}", i) : "");
    file =
        UniqueFd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file.valid() && errno != EEXIST) break;
  }
  if (!file.valid()) return fail(system_error(path.string(), "cannot write", errno));
  // Some file systems report a full disk or quota only when a file is closed.
  if (write_all(file.get(), text) && ::close(file.release()) == 0) return draft;
  const Error error = system_error(path.string(), "cannot write", errno);
  ::unlink(draft.c_str());
  return fail(error);
}

}  // namespace assay::base
