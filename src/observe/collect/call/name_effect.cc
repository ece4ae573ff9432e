// The effect of unlink, rename, link and symlink: names change, contents do not.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "observe/collect/call/call_effect.h"
#include "observe/collect/call/remote_status.h"
#include "observe/collect/event/event.h"

// <linux/fs.h> has them, and clashes with <sys/mount.h> on some systems.
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1U
#define RENAME_EXCHANGE 2U
#endif

namespace assay::collect {
namespace {

using wire::RecordOp;

bool is_link(const RemoteFile& file) {
  return file.error == 0 && S_ISLNK(file.status.st_mode);
}

// Added whether or not the call will succeed: resolving paths again does no harm.
void add_relink(CallEffect& effect, std::string path) {
  effect.events.push_back(
      {.op = RecordOp::kRelink, .flags = wire::flag::kNoStamp, .path = std::move(path)});
  effect.will_succeed = true;
}

// In a sticky directory (/tmp) only the owner of the file or of the directory may remove a name.
bool may_remove(const RemoteView& view, const RemoteName& name) {
  if (!view.may(name.parent, W_OK | X_OK)) return false;
  if ((name.parent.status.st_mode & S_ISVTX) == 0 || runs_as_root(view.thread())) return true;
  const RemoteStatus status = read_remote_status(view.thread());
  return !status.valid || status.user == 0 || status.user == name.file.status.st_uid ||
         status.user == name.parent.status.st_uid;
}

// The kernel compares mounts, not file systems. With `subtrees` device numbers are compared too,
// because some file systems forbid links between subvolumes and give each its own device number.
bool same_mount(const RemoteFile& a, const RemoteFile& b, bool subtrees) {
  if (subtrees && a.status.st_dev != b.status.st_dev) return false;
  struct statx left {};
  struct statx right {};
  if (::statx(a.fd.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &left) != 0) return true;
  if (::statx(b.fd.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &right) != 0) return true;
  if ((left.stx_mask & STATX_MNT_ID) == 0) return a.status.st_dev == b.status.st_dev;
  return left.stx_mnt_id == right.stx_mnt_id;
}

bool is_empty_directory(const RemoteName& name) {
  const int fd = ::openat(name.parent.fd.get(), name.name.c_str(),
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return true;  // unknown
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd), ::closedir);
  if (!directory) return true;
  for (int entries = 0; ::readdir(directory.get()) != nullptr;) {
    if (++entries > 2) return false;
  }
  return true;
}

bool inside(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

bool rename_will_succeed(const RemoteView& view, const RemoteName& from, const RemoteName& to,
                         std::uint64_t flags) {
  const bool directory = from.file.directory();
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  if (!may_remove(view, from)) return false;
  if (from.only_directory && !directory) return false;
  if (directory && inside(to.path(), from.path())) return false;
  if (!same_mount(from.parent, to.parent, false)) return false;
  if (to.file.error != 0) {
    return !exchange && to.file.error == ENOENT && view.may(to.parent, W_OK | X_OK) &&
           (directory || !to.only_directory);
  }
  if ((flags & RENAME_NOREPLACE) != 0 || !may_remove(view, to)) return false;
  if (exchange) return !(to.file.directory() && inside(from.path(), to.path()));
  if (directory != to.file.directory()) return false;
  return !directory || is_empty_directory(to);
}

}  // namespace

std::optional<CallEffect> unlink_effect(const RemoteView& view, PathArgument file) {
  RemoteName name = view.find_name(file.dirfd, file.path);
  const bool too_long = name.accept_too_long_path();
  if (name.error != 0 || name.only_directory) return std::nullopt;
  CallEffect effect;
  if (is_link(name.file)) {
    add_relink(effect, name.path());
    return effect;
  }
  if (!name.file.regular()) return std::nullopt;
  add_change(effect, name.file, Change::kName);
  effect.events.push_back(
      {.op = RecordOp::kDelete, .stamp = stamp_of(name.file.status), .path = name.file.path});
  effect.will_succeed = may_remove(view, name);
  if (too_long) return long_path_effect(view, "removed", file, effect.will_succeed);
  return effect;
}

std::optional<CallEffect> rename_effect(const RemoteView& view, PathArgument from_given,
                                        PathArgument to_given, std::uint64_t flags) {
  RemoteName from = view.find_name(from_given.dirfd, from_given.path);
  RemoteName to = view.find_name(to_given.dirfd, to_given.path);
  const bool from_too_long = from.accept_too_long_path();
  const bool too_long = to.accept_too_long_path() || from_too_long;
  if (from.error != 0 || to.error != 0 || from.file.error != 0) return std::nullopt;
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  const bool replaced = to.file.regular();
  if (to.file.error == 0 && to.file.status.st_ino == from.file.status.st_ino &&
      to.file.status.st_dev == from.file.status.st_dev) {
    return std::nullopt;  // two names of one file: the kernel leaves both
  }

  CallEffect effect;
  if (replaced) add_change(effect, to.file, Change::kName);
  if (from.file.regular()) add_change(effect, from.file, Change::kName);
  const bool source_counts = from.file.regular() || from.file.directory();
  const bool target_counts = replaced || to.file.directory();
  if (source_counts || (exchange && target_counts)) {
    effect.events.push_back({.op = RecordOp::kRename,
                             .flags = exchange ? wire::flag::kExchange : std::uint16_t{0},
                             .stamp = stamp_of(from.file.status),
                             .path = from.path(),
                             .other = to.path()});
  } else if (replaced) {
    // A link or a device replaces a file, which counts as deleting that file.
    effect.events.push_back(
        {.op = RecordOp::kDelete, .stamp = stamp_of(to.file.status), .path = to.path()});
  }
  effect.will_succeed = rename_will_succeed(view, from, to, flags);
  if (too_long && !effect.events.empty()) {
    return long_path_effect(view, "renamed", from_given, effect.will_succeed);
  }
  // Last, and only if the call succeeds: later events use paths as they are afterwards.
  if (is_link(from.file) || is_link(to.file)) {
    if (effect.will_succeed || effect.events.empty()) add_relink(effect, to.path());
  }
  if (effect.events.empty()) return std::nullopt;
  return effect;
}

std::optional<CallEffect> symlink_effect(const RemoteView& view, PathArgument link) {
  const RemoteName name = view.find_name(link.dirfd, link.path);
  if (name.error != 0 || name.only_directory) return std::nullopt;
  CallEffect effect;
  add_relink(effect, name.path());
  return effect;
}

std::optional<CallEffect> link_effect(const RemoteView& view, PathArgument from_given,
                                      PathArgument to_given, std::uint64_t flags) {
  const bool follow = (flags & AT_SYMLINK_FOLLOW) != 0;
  RemoteFile from = from_given.path.empty() && (flags & AT_EMPTY_PATH) != 0
                        ? view.find_descriptor(from_given.dirfd)
                        : view.find(from_given.dirfd, from_given.path, follow);
  RemoteName to = view.find_name(to_given.dirfd, to_given.path);
  const bool from_too_long = from.accept_too_long_path();
  const bool too_long = to.accept_too_long_path() || from_too_long;
  if (to.error != 0) return std::nullopt;
  CallEffect effect;
  if (is_link(from)) {
    add_relink(effect, to.path());
    return effect;
  }
  if (!from.regular()) return std::nullopt;
  effect.events.push_back({.op = RecordOp::kLink,
                           .stamp = stamp_of(from.status),
                           .path = from.path,
                           .other = to.path()});
  // A file without a name can be linked only if it was created without one (O_TMPFILE); the kernel
  // shows such a file as "#inode".
  const bool linkable =
      from.status.st_nlink > 0 ||
      from.path.ends_with("/#" + std::to_string(from.status.st_ino) + " (deleted)");
  effect.will_succeed = linkable && to.file.error == ENOENT && !to.only_directory &&
                        view.may(to.parent, W_OK | X_OK) && same_mount(from, to.parent, true);
  if (too_long) return long_path_effect(view, "linked", from_given, effect.will_succeed);
  return effect;
}

}  // namespace assay::collect
