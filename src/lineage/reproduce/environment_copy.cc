#include "lineage/reproduce/environment_copy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/unique_fd.h"
#include "lineage/archive/copy_contents.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongestScript = 1 << 20;

base::Result<void> copy_regular(const fs::path& from, const fs::path& to) {
  ASSAY_TRY(const base::UniqueFd source, base::open_regular(from));
  ASSAY_TRY(const struct stat status, base::regular_status(source.get(), from));
  const base::UniqueFd target(::open(to.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                     (status.st_mode & 0777) | S_IWUSR));
  if (!target.valid()) return base::fail(base::system_error(to, "cannot be created", errno));
  ASSAY_TRY_VOID(copy_contents(source.get(), target.get(), to));
  return {};
}

base::Result<void> relocate_script(const fs::path& script, const PathMap& map) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(script, error);
  if (error || size > std::uintmax_t{kLongestScript}) return {};
  ASSAY_TRY(const std::string text, base::read_file(script, base::Bytes(kLongestScript)));
  if (text.find('\0') != text.npos) return {};
  const std::string moved = map.argument(text);
  if (moved == text) return {};
  const fs::perms mode = fs::status(script, error).permissions();
  ASSAY_TRY_VOID(base::write_file(script, moved));
  fs::permissions(script, mode, error);
  return {};
}

}  // namespace

base::Result<void> copy_environment(const std::string& environment, const PathMap& map) {
  const fs::path target = map.path(environment);
  const fs::path scripts = fs::path(environment) / "bin";
  std::error_code error;
  fs::create_directories(target, error);
  fs::recursive_directory_iterator at(environment, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const fs::path to = map.path(at->path().string());
    const fs::file_status status = at->symlink_status(error);
    if (error) break;
    if (fs::is_symlink(status)) {
      const std::string leads_to = fs::read_symlink(at->path(), error).string();
      if (!error) fs::create_symlink(map.path(leads_to), to, error);
    } else if (fs::is_directory(status)) {
      fs::create_directory(to, error);
    } else if (fs::is_regular_file(status)) {
      ASSAY_TRY_VOID(copy_regular(at->path(), to));
      if (at->path().parent_path() == scripts) ASSAY_TRY_VOID(relocate_script(to, map));
    }
    if (error) break;
  }
  if (error) {
    return base::fail(base::failed_error(environment, "cannot be copied: " + error.message()));
  }
  return {};
}

}  // namespace assay::lineage
