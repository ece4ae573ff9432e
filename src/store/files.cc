#include "store/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/unique_fd.h"
#include "store/shared.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kOthers = 0077;
constexpr std::string_view kIgnoreEverything = "*\n";

constexpr int kMostRemovals = 100;
constexpr const char* kMakeWritable = "make its directory writable for you";
constexpr const char* kMakeReadable = "make it and its directory readable for you";

tl::unexpected<base::Error> failed(const fs::path& path, std::string_view what,
                                   const char* hint = kMakeWritable) {
  const int reason = errno;
  const bool denied = reason == EACCES || reason == EPERM || reason == EROFS;
  return base::fail(base::system_error(path.string(), what, reason, denied ? hint : ""));
}

// Hides the store from git. A file with contents is kept; an empty one was left by a kill between
// creating and writing it.
base::Result<void> write_gitignore(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && status.st_size > 0) return {};
  ASSAY_TRY_VOID(make_private_file(path));
  const base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return failed(path, "cannot open");
  const auto written = ::write(file.get(), kIgnoreEverything.data(), kIgnoreEverything.size());
  if (written != static_cast<ssize_t>(kIgnoreEverything.size())) {
    return failed(path, "cannot write");
  }
  return {};
}

}  // namespace

base::Result<void> make_directory(const Location& location) {
  const char* path = location.directory.c_str();
  const bool made = ::mkdir(path, kDirectoryMode) == 0;
  if (!made && errno != EEXIST) return failed(location.directory, "cannot create");
  struct stat status {};
  if (::stat(path, &status) != 0)
    return failed(location.directory, "cannot read its status", kMakeReadable);
  if (!S_ISDIR(status.st_mode)) {
    return base::fail(base::unfit_error(location.directory.string(), "is not a directory",
                                        "move it away and run: assay init"));
  }
  // The umask may have taken the owner's own bits, in this process or in one that was killed here.
  const mode_t owner_bits = status.st_mode & kDirectoryMode;
  const bool lost = made ? owner_bits != kDirectoryMode : owner_bits == 0;
  if (lost && ::chmod(path, kDirectoryMode) != 0) {
    return failed(location.directory, "cannot set its mode");
  }
  return write_gitignore(location.directory / ".gitignore");
}

base::Result<void> make_private_file(const fs::path& path) {
  // mknod creates a regular file as open(O_CREAT | O_EXCL) does, but without a descriptor. Closing
  // a descriptor of the database would drop the locks that other connections of this process hold
  // on it (POSIX locks belong to the process).
  const char* name = path.c_str();
  struct stat status {};
  // A process that has created the store removes its mark, perhaps between these two calls.
  for (int removed = 0;; ++removed) {
    if (::mknod(name, S_IFREG | kFileMode, 0) != 0 && errno != EEXIST) {
      return failed(path, "cannot create");
    }
    if (::lstat(name, &status) == 0) break;
    if (errno != ENOENT || removed == kMostRemovals) {
      return failed(path, "cannot read its status", kMakeReadable);
    }
  }
  // The umask may have taken the owner's own bits, in this process or in one that was killed here.
  const bool is_new = S_ISREG(status.st_mode) && status.st_size == 0;
  const bool lost = (status.st_mode & kFileMode) != kFileMode;
  if (is_new && lost && ::chmod(name, kFileMode) != 0) return failed(path, "cannot set its mode");
  return {};
}

fs::path creation_mark(const Location& location) {
  return location.directory / "creating";
}

base::Result<void> make_files(const Location& location) {
  ASSAY_TRY_VOID(make_directory(location));
  struct stat status {};
  if (::lstat(location.database.c_str(), &status) != 0) {
    ASSAY_TRY_VOID(make_private_file(creation_mark(location)));
  }
  return make_private_file(location.database);
}

base::Result<void> check_file(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return failed(path, "cannot read its status", kMakeReadable);
    return base::fail(
        base::unfit_error(path.string(), "nothing is recorded here or above",
                          "cd to the project, or record something: assay run -- COMMAND"));
  }
  if (!S_ISREG(status.st_mode)) {
    return base::fail(base::unfit_error(path.string(), "is not a regular file",
                                        "move it away and run: assay init"));
  }
  // Otherwise a store that another user put above a shared directory would collect this user's
  // commands.
  const uid_t user = ::geteuid();
  if (user != 0 && status.st_uid != user && !may_use_shared(path.parent_path())) {
    return base::fail(base::unfit_error(
        path.string(), fmt::format("belongs to another user (uid {})", status.st_uid),
        "run 'assay init' in a directory of yours, or change its owner"));
  }
  return {};
}

Privacy make_private(const fs::path& database) {
  Privacy privacy = Privacy::kAlreadyPrivate;
  const bool shared = is_shared(database.parent_path());
  const mode_t others = shared ? S_IRWXO : kOthers;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const fs::path path = database.string() + suffix;
    struct stat status {};
    const auto is_open_to_others = [&] {
      return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
             (status.st_mode & others) != 0;
    };
    if (!is_open_to_others()) continue;
    // Some file systems report success and do nothing, so the mode is read back.
    static_cast<void>(::chmod(path.c_str(), shared ? kFileMode | (kFileMode >> 3U) : kFileMode));
    if (is_open_to_others()) return Privacy::kUnsupported;
    privacy = Privacy::kMadePrivate;
  }
  return privacy;
}

bool is_shared_between_machines(std::int64_t file_system_magic) {
  switch (file_system_magic) {
    case 0x6969:      // NFS
    case 0x517b:      // SMB
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB 2
    case 0x0bd00bd0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x00c36400:  // Ceph
    case 0x5346414f:  // AFS
    case 0x01021997:  // 9p
    case 0x01161970:  // GFS2
    case 0x7461636f:  // OCFS2
    case 0x65735546:  // FUSE: sshfs, JuiceFS, object stores, virtiofs
      return true;
    default:
      return false;
  }
}

base::Result<bool> is_shared_between_machines(const fs::path& path) {
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0)
    return failed(path, "cannot read its file system", kMakeReadable);
  // Some are above 2^31, and the field's sign differs between architectures.
  return is_shared_between_machines(static_cast<std::int64_t>(status.f_type) & 0xffffffff);
}

base::Result<void> sync_file(const fs::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) return failed(path, "cannot write to disk");
  return {};
}

}  // namespace assay::store
