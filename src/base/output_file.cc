#include "base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace assay::base {

Result<void> write_output(const std::filesystem::path& path, std::string_view text) {
  struct stat status {};
  const bool exists = ::lstat(path.c_str(), &status) == 0;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const bool in_place = exists && (!S_ISREG(status.st_mode) || ::access(folder.c_str(), W_OK) != 0);
  if (in_place) return write_file(path, text);
  auto written = replace_file(path, text, exists ? status.st_mode & 0777 : 0666);
  if (!written) written.error().where = path.string();  // not that of a draft
  return written;
}

}  // namespace assay::base
