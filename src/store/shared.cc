#include "store/shared.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/unique_fd.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolder = S_ISGID | S_IRWXU | S_IRWXG;

tl::unexpected<base::Error> failed(const fs::path& path, std::string_view what) {
  const int reason = errno;
  return base::fail(base::system_error(
      path, what, reason,
      reason == EPERM ? "whoever owns it must do that, and be a member of the group" : ""));
}

// As linux/posix_acl_xattr.h has it: owner and group may do everything with what is made here,
// others nothing. Where a folder has such a list, the umask does not count.
base::Result<void> set_default_list(const fs::path& folder) {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  struct {
    std::uint32_t version = 2;
    std::array<Entry, 3> entries = {
        {{0x01, 7, 0xFFFFFFFF}, {0x04, 7, 0xFFFFFFFF}, {0x20, 0, 0xFFFFFFFF}}};
  } list;
  static_assert(sizeof list == 28);
  if (::setxattr(folder.c_str(), "system.posix_acl_default", &list, sizeof list, 0) == 0) return {};
  if (errno == EOPNOTSUPP) {
    return base::fail(base::unfit_error(
        folder, "its file system has no access control lists, which a shared store needs",
        "put the project on another file system"));
  }
  return failed(folder, "its access control list cannot be set");
}

base::Result<void> give_to_group(const fs::path& path, gid_t group) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return failed(path, "cannot read its status");
  const bool folder = S_ISDIR(status.st_mode);
  if (!folder && !S_ISREG(status.st_mode)) return {};
  const mode_t mode =
      folder ? kFolder : (status.st_mode & S_IRWXU) | ((status.st_mode & S_IRWXU) >> 3U);
  const bool is_so = status.st_gid == group && (status.st_mode & 07777) == mode;
  if (!is_so && (::lchown(path.c_str(), static_cast<uid_t>(-1), group) != 0 ||
                 ::chmod(path.c_str(), mode) != 0)) {
    return failed(path, "cannot be given to the group");
  }
  return folder ? set_default_list(path) : base::Result<void>{};
}

// What anybody's umask would do, on a file and a folder.
base::Result<void> check(const fs::path& directory, gid_t group) {
  const fs::path folder = directory / fmt::format("check-{}", ::getpid());
  const fs::path file = folder / "file";
  const mode_t before = ::umask(077);
  const bool made = ::mkdir(folder.c_str(), 0777) == 0;
  const base::UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  ::umask(before);
  struct stat of_folder {};
  struct stat of_file {};
  const bool seen = ::stat(folder.c_str(), &of_folder) == 0 && ::stat(file.c_str(), &of_file) == 0;
  ::unlink(file.c_str());
  ::rmdir(folder.c_str());
  const bool right = made && fd.valid() && seen && of_folder.st_gid == group &&
                     of_file.st_gid == group && (of_folder.st_mode & 02070) == 02070 &&
                     (of_file.st_mode & 0067) == 0060;
  if (right) return {};
  return base::fail(base::unfit_error(
      directory, "what is made in it does not get the group's permissions on this file system",
      "put the project on another file system"));
}

bool is_member(gid_t group) {
  if (::getegid() == group) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

base::Result<void> share(const Location& location, gid_t group) {
  if (::geteuid() != 0 && !is_member(group)) {
    return base::fail(base::usage_error("init", fmt::format("you are not in the group {}", group),
                                        "name one of yours with --group"));
  }
  // First, so that nothing is made in it meanwhile without the group.
  ASSAY_TRY_VOID(give_to_group(location.directory, group));
  std::error_code error;
  fs::create_directory(location.directory / "spool", error);
  fs::recursive_directory_iterator at(location.directory, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    ASSAY_TRY_VOID(give_to_group(at->path(), group));
  }
  if (error)
    return base::fail(base::system_error(location.directory, "cannot be read", error.value()));
  return check(location.directory, group);
}

bool is_shared(const fs::path& directory) {
  struct stat status {};
  return ::stat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         (status.st_mode & kFolder) == kFolder;
}

bool may_use_shared(const fs::path& directory) {
  struct stat status {};
  struct stat project {};
  return is_shared(directory) && ::stat(directory.c_str(), &status) == 0 &&
         is_member(status.st_gid) && ::stat(directory.parent_path().c_str(), &project) == 0 &&
         (project.st_mode & S_IWOTH) == 0;
}

}  // namespace assay::store
