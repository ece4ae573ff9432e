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
#include <cstring>
#include <optional>
#include <vector>

#include "base/unique_fd.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolder = S_ISGID | S_IRWXU | S_IRWXG;

tl::unexpected<base::Error> sharing_failed(const fs::path& path, std::string_view what) {
  const int reason = errno;
  return base::fail(base::system_error(
      path, what, reason,
      reason == EPERM ? "only its owner can do that, and must be a member of the group" : ""));
}

// The default ACL in the format of linux/posix_acl_xattr.h: owner and group have all permissions on
// new files, others none. In a folder with a default ACL the umask is not applied.
constexpr const char* kListName = "system.posix_acl_default";
struct DefaultList {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  std::uint32_t version = 2;
  std::array<Entry, 3> entries = {
      {{0x01, 7, 0xFFFFFFFF}, {0x04, 7, 0xFFFFFFFF}, {0x20, 0, 0xFFFFFFFF}}};
};
static_assert(sizeof(DefaultList) == 28);

bool has_default_list(const fs::path& folder) {
  const DefaultList wanted;
  std::array<char, sizeof wanted + 1> is{};
  const ssize_t size = ::getxattr(folder.c_str(), kListName, is.data(), is.size());
  return size == static_cast<ssize_t>(sizeof wanted) &&
         std::memcmp(is.data(), &wanted, sizeof wanted) == 0;
}

base::Result<void> set_default_list(const fs::path& folder) {
  const DefaultList list;
  if (::setxattr(folder.c_str(), kListName, &list, sizeof list, 0) == 0) return {};
  if (errno == EOPNOTSUPP) {
    return base::fail(base::unfit_error(
        folder, "its file system has no access control lists, which a shared store needs",
        "put the project on another file system"));
  }
  return sharing_failed(folder, "its access control list cannot be set");
}

// A file or folder with wrong group or permissions.
struct PermissionProblem {
  fs::path path;
  mode_t mode = 0;  // the mode it should have
  bool folder = false;
  bool others = false;  // the caller is neither root nor the owner
};

base::Result<std::optional<PermissionProblem>> check_permissions(const fs::path& path,
                                                                 gid_t group) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;  // a run that ends removes its own
    return sharing_failed(path, "cannot read its status");
  }
  const bool folder = S_ISDIR(status.st_mode);
  if (!folder && !S_ISREG(status.st_mode)) return std::nullopt;
  const mode_t mode =
      folder ? kFolder : (status.st_mode & S_IRWXU) | ((status.st_mode & S_IRWXU) >> 3U);
  const bool is_so = status.st_gid == group && (status.st_mode & 07777) == mode;
  if (is_so && (!folder || has_default_list(path))) return std::nullopt;
  const bool others = ::geteuid() != 0 && status.st_uid != ::geteuid();
  // A member may have made a file in a shared store private on purpose.
  if (others && !folder && status.st_gid == group) return std::nullopt;
  return PermissionProblem{path, mode, folder, others};
}

base::Result<std::vector<PermissionProblem>> check_folder(const fs::path& directory, gid_t group) {
  std::vector<PermissionProblem> wrong;
  std::error_code error;
  fs::recursive_directory_iterator at(directory, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    ASSAY_TRY(auto one, check_permissions(at->path(), group));
    if (one) wrong.push_back(*std::move(one));
  }
  if (error) return base::fail(base::system_error(directory, "cannot be read", error.value()));
  return wrong;
}

base::Result<void> give_to_group(const PermissionProblem& wrong, gid_t group) {
  const char* path = wrong.path.c_str();
  if (::lchown(path, static_cast<uid_t>(-1), group) != 0 || ::chmod(path, wrong.mode) != 0) {
    if (errno == ENOENT) return {};
    return sharing_failed(wrong.path, "cannot be given to the group");
  }
  return wrong.folder ? set_default_list(wrong.path) : base::Result<void>{};
}

// Checks with a strict umask that a new file and a new folder get the group's permissions.
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
  std::error_code ignored;
  fs::create_directory(location.directory / "spool", ignored);
  ASSAY_TRY(const std::vector<PermissionProblem> inside, check_folder(location.directory, group));
  ASSAY_TRY(const std::optional<PermissionProblem> top,
            check_permissions(location.directory, group));
  // All or nothing: in a store with files of another group, nobody could record.
  std::vector<PermissionProblem> all = inside;
  if (top) all.push_back(*top);
  const auto others =
      std::find_if(all.begin(), all.end(), [](const PermissionProblem& w) { return w.others; });
  if (others != all.end()) {
    errno = EPERM;
    return sharing_failed(others->path, "cannot be given to the group");
  }
  // The folder itself is changed last, so that its current users keep access until then.
  for (const PermissionProblem& wrong : all) ASSAY_TRY_VOID(give_to_group(wrong, group));
  // Files that were created meanwhile.
  ASSAY_TRY(const std::vector<PermissionProblem> since, check_folder(location.directory, group));
  for (const PermissionProblem& wrong : since) {
    if (!wrong.others) ASSAY_TRY_VOID(give_to_group(wrong, group));
  }
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
