#include "base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <tuple>

#include "base/draft.h"
#include "base/file.h"

namespace assay::base {
namespace {

// Whether a new file can take the place of this one without anybody noticing: links to it, another
// owner and write protection would be lost.
bool is_replaceable(const std::filesystem::path& path, const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == ::geteuid() &&
         ::access(path.c_str(), W_OK) == 0;
}

}  // namespace

Result<void> write_output(const std::filesystem::path& path, std::string_view text) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return replace_file(path, text, 0666);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!is_replaceable(path, status) || ::access(folder.c_str(), W_OK) != 0)
    return write_file(path, text);
  ASSAY_TRY(const std::filesystem::path draft, write_draft(path, text, 0600));
  std::ignore = ::chown(draft.c_str(), static_cast<uid_t>(-1), status.st_gid);
  const bool complete = ::chmod(draft.c_str(), status.st_mode & 07777) == 0 &&
                        ::rename(draft.c_str(), path.c_str()) == 0;
  if (complete) return {};
  // A mount point, say. There is room for the text: the draft had it.
  ::unlink(draft.c_str());
  return write_file(path, text);
}

}  // namespace assay::base
