// The effect of open, openat, openat2, creat, mknod, truncate and the utime family.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "observe/collect/call/call_effect.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/project_folder.h"

namespace assay::collect {
namespace {

using wire::RecordOp;

constexpr std::uint64_t kUnnamedFile = O_TMPFILE & ~O_DIRECTORY;

bool is_pseudo(int fd) {
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return false;
  switch (static_cast<std::uint32_t>(system.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case BPF_FS_MAGIC:
    case SELINUX_MAGIC:
    case PSTOREFS_MAGIC:
    case EFIVARFS_MAGIC:
    case BINFMTFS_MAGIC:
      return true;
    default:
      return false;
  }
}

// A file that will be created: it has no stamp yet.
std::optional<CallEffect> creation(const RemoteView& view, PathArgument file, RemoteName made) {
  const bool too_long = made.accept_too_long_path();
  if (made.error != 0 || made.only_directory) return std::nullopt;
  CallEffect effect;
  effect.events.push_back(
      {.op = RecordOp::kCreate, .flags = wire::flag::kNoStamp, .path = made.path()});
  effect.will_succeed = made.file.error == ENOENT && view.may(made.parent, W_OK | X_OK);
  if (too_long) return long_path_effect(view, "made", file, effect.will_succeed);
  return effect;
}

std::optional<CallEffect> unnamed_creation(const RemoteView& view, const RemoteFile& directory) {
  if (!directory.directory()) return std::nullopt;
  CallEffect effect;
  effect.events.push_back({.op = RecordOp::kCreate,
                           .flags = wire::flag::kNoStamp | wire::flag::kUnnamed,
                           .path = directory.path});
  effect.will_succeed = view.may(directory, W_OK | X_OK);
  return effect;
}

struct Access {
  bool read = false;
  bool write = false;
  bool cut = false;
  bool all = true;  // with `cut`: truncates to zero bytes
};

// Nothing if it is not a regular file.
std::optional<CallEffect> existing(const RemoteView& view, PathArgument given, RemoteFile file,
                                   Access access) {
  const bool too_long = file.accept_too_long_path();
  if (!file.regular()) return std::nullopt;
  CallEffect effect;
  CallEffect::ExpectedEvent event{.op = RecordOp::kRead, .stamp = stamp_of(file.status)};
  if (access.cut) {
    event.op = RecordOp::kTruncate;
  } else if (access.write && access.read) {
    event.flags = wire::flag::kWritable;
  } else if (access.write) {
    event.op = RecordOp::kWrite;
  }
  if (access.write || access.cut) {
    const Change kept = access.read ? Change::kContentReadable : Change::kContent;
    add_change(effect, file, access.cut && access.all ? Change::kTruncate : kept);
  }
  const int mode = (access.read ? R_OK : 0) | (access.write || access.cut ? W_OK : 0);
  effect.will_succeed = view.may(file, mode);
  if (too_long) {
    return long_path_effect(view, access.cut ? "cut" : "opened", given, effect.will_succeed);
  }
  event.other = view.spelled(given.dirfd, given.path, file.path);
  event.path = std::move(file.path);
  effect.events.push_back(std::move(event));
  return effect;
}

std::optional<CallEffect> absence(const RemoteView& view, PathArgument file) {
  std::string path = view.spelled(file.dirfd, file.path, {});
  if (path.empty() || is_unreported(path)) return std::nullopt;
  CallEffect effect;
  effect.events.push_back(
      {.op = RecordOp::kAbsent, .flags = wire::flag::kNoStamp, .path = std::move(path)});
  effect.reports_failure = true;
  return effect;
}

std::optional<CallEffect> listing(const RemoteView& view, PathArgument given, RemoteFile directory,
                                  std::uint64_t open_flags) {
  if (!directory.path.starts_with('/') || is_unreported(directory.path)) {
    return std::nullopt;
  }
  CallEffect effect;
  effect.will_succeed = view.may(directory, R_OK);
  const bool relative = !given.path.starts_with('/');
  const bool plain = (open_flags & O_DIRECTORY) == 0;
  effect.events.push_back({.op = RecordOp::kList,
                           .flags = static_cast<std::uint16_t>(
                               wire::flag::kNoStamp | (relative ? wire::flag::kRelative : 0) |
                               (plain ? wire::flag::kPlainOpen : 0)),
                           .path = std::move(directory.path)});
  return effect;
}

}  // namespace

void add_change(CallEffect& effect, const RemoteFile& file, Change change) {
  if (file.fd.valid() && is_pseudo(file.fd.get())) return;
  effect.changes.push_back({.path = file.path, .stamp = stamp_of(file.status), .change = change});
}

std::optional<CallEffect> open_effect(const RemoteView& view, PathArgument file,
                                      std::uint64_t flags, std::uint64_t resolve) {
  if ((flags & O_PATH) != 0) return std::nullopt;
  if ((flags & kUnnamedFile) != 0) {
    return unnamed_creation(view, view.find(file.dirfd, file.path, true, resolve));
  }
  const bool create = (flags & O_CREAT) != 0;
  const bool exclusive = create && (flags & O_EXCL) != 0;
  const bool follow = (flags & O_NOFOLLOW) == 0 && !exclusive;
  RemoteFile found = view.find(file.dirfd, file.path, follow, resolve);
  if (found.error == ENOENT && create) {
    return creation(view, file, view.find_creation(file.dirfd, file.path, follow, resolve));
  }
  if (found.error == ENOENT) return resolve == 0 ? absence(view, file) : std::nullopt;
  if (found.directory()) return listing(view, file, std::move(found), flags);
  if ((flags & O_DIRECTORY) != 0) return std::nullopt;
  // Memory (memfd_create) reopened through /proc is in no directory and so not an input.
  if (found.path.starts_with("/memfd:")) return std::nullopt;

  const std::uint64_t mode = flags & O_ACCMODE;
  const Access access{.read = mode == O_RDONLY || mode == O_RDWR,
                      .write = mode == O_WRONLY || mode == O_RDWR,
                      .cut = (flags & O_TRUNC) != 0};
  if (!access.read && !access.write) return std::nullopt;  // for ioctl only
  std::optional<CallEffect> effect = existing(view, file, std::move(found), access);
  if (effect && exclusive) effect->will_succeed = false;
  // With other ways of resolving (openat2), the path as given may not mean what it says.
  if (effect && resolve != 0) {
    for (CallEffect::ExpectedEvent& event : effect->events) event.other.clear();
  }
  return effect;
}

std::optional<CallEffect> query_effect(const RemoteView& view, PathArgument file,
                                       QueryAnswer answer) {
  if (file.path.empty()) return std::nullopt;
  if (file.path.front() == '/' && is_unreported(std::string(file.path))) {
    return std::nullopt;
  }
  const RemoteFile found = view.find(file.dirfd, file.path, true);
  const bool is_link = found.error == ENOENT && view.find(file.dirfd, file.path, false).error == 0;
  if (found.error == ENOENT && !is_link) return absence(view, file);
  if (found.error != 0 && !is_link) return std::nullopt;
  // As given: links on the way are followed later, and count.
  std::string path = view.spelled(file.dirfd, file.path, {});
  if (path.empty()) return std::nullopt;
  CallEffect effect;
  const bool size = answer == QueryAnswer::kSize;
  effect.events.push_back(
      {.op = RecordOp::kQueried,
       .flags = static_cast<std::uint16_t>(wire::flag::kNoStamp | (size ? wire::flag::kSize : 0)),
       .path = std::move(path)});
  effect.will_succeed = true;
  return effect;
}

std::optional<CallEffect> mknod_effect(const RemoteView& view, PathArgument file,
                                       std::uint64_t mode) {
  const std::uint64_t type = mode & S_IFMT;
  if (type != 0 && type != S_IFREG) return std::nullopt;
  return creation(view, file, view.find_creation(file.dirfd, file.path, false));
}

std::optional<CallEffect> truncate_effect(const RemoteView& view, PathArgument file,
                                          std::uint64_t length) {
  return existing(view, file, view.find(file.dirfd, file.path, true),
                  {.cut = true, .all = length == 0});
}

std::optional<CallEffect> times_effect(const RemoteView& view, PathArgument file,
                                       std::uint64_t flags) {
  RemoteFile found = file.path.empty() && (flags & AT_EMPTY_PATH) != 0
                         ? view.find_descriptor(file.dirfd)
                         : view.find(file.dirfd, file.path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
  // The content of a file with an unknown path is not hashed anyway.
  if (found.accept_too_long_path() || !found.regular()) return std::nullopt;
  CallEffect effect;
  add_change(effect, found, Change::kTimes);
  effect.will_succeed = true;  // if it fails, nothing is wrong: there is no event
  return effect;
}

}  // namespace assay::collect
