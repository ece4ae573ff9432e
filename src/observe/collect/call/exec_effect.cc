// The effect of execve and execveat: the process becomes the program, and the kernel itself reads
// further files: interpreters of scripts, and the loader that an ELF file names.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "observe/collect/call/call_effect.h"
#include "observe/collect/call/remote_status.h"
#include "observe/collect/event/event.h"
#include "observe/collect/process/interpreter.h"

namespace assay::collect {
namespace {

using wire::RecordOp;

constexpr int kMostScripts = 5;  // nested interpreters that are themselves scripts

ProgramInterpreter interpreter_of_file(const RemoteFile& file) {
  return interpreter_of(fmt::format("/proc/self/fd/{}", file.fd.get()));
}

// Whether other kinds of programs can be run here (binfmt_misc): their interpreters are unknown.
bool binfmt_misc_enabled() {
  return ::access("/proc/sys/fs/binfmt_misc/register", F_OK) == 0;
}

void add_read(CallEffect& effect, const RemoteFile& file) {
  effect.events.push_back(
      {.op = RecordOp::kRead, .stamp = stamp_of(file.status), .path = file.path});
}

// Whether only no_new_privs keeps the program from gaining privileges (set-user-id, set-group-id,
// capabilities).
bool drops_privileges(const RemoteView& view, const RemoteFile& file) {
  const mode_t mode = file.status.st_mode;
  const std::string path = fmt::format("/proc/self/fd/{}", file.fd.get());
  const bool capable = ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  const bool set_group = (mode & S_ISGID) != 0 && (mode & S_IXGRP) != 0;
  if ((mode & S_ISUID) == 0 && !set_group && !capable) return false;
  const RemoteStatus status = read_remote_status(view.thread());
  if (!status.no_new_privileges) return false;
  const bool differs = ((mode & S_ISUID) != 0 && file.status.st_uid != status.user) ||
                       (set_group && file.status.st_gid != status.group) ||
                       (capable && status.user != 0);
  struct statvfs system {};
  const bool honoured = ::fstatvfs(file.fd.get(), &system) != 0 || (system.f_flag & ST_NOSUID) == 0;
  return differs && honoured;
}

}  // namespace

std::optional<CallEffect> exec_effect(const RemoteView& view, PathArgument given,
                                      std::uint64_t flags) {
  // A mount namespace created by clone is noticed here at the latest.
  const bool other_mounts = in_other_mounts(view.thread());
  if (other_mounts) RemoteView::views_may_differ();
  RemoteFile file = given.path.empty() && (flags & AT_EMPTY_PATH) != 0
                        ? view.find_descriptor(given.dirfd)
                        : view.find(given.dirfd, given.path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
  bool too_long = file.accept_too_long_path();
  if (!file.regular()) return std::nullopt;
  CallEffect effect;
  effect.will_succeed = view.may(file, X_OK);
  // Memory that is executed (memfd_create) is not a file.
  const bool memory = file.path.starts_with("/memfd:");
  effect.events.push_back({.op = RecordOp::kExec,
                           .flags = memory ? wire::flag::kNoStamp : std::uint16_t{0},
                           .stamp = stamp_of(file.status),
                           .path = file.path});
  if (other_mounts) {
    effect.events.push_back(
        std::move(missed_effect(view, kNamespace, kOtherMounts).events.front()));
  }
  if (drops_privileges(view, file)) {
    effect.events.push_back(
        {.op = RecordOp::kMissed,
         .flags = wire::flag::kNoStamp,
         .path = "setuid",
         .other = fmt::format("{} is setuid and ran without its privileges", file.path)});
  }
  if (!memory) add_read(effect, file);
  for (int scripts = 0;; ++scripts) {
    const ProgramInterpreter interpreter = interpreter_of_file(file);
    const bool nameless = interpreter.kind == ProgramKind::kScript && interpreter.path.empty();
    const bool unknown = interpreter.kind == ProgramKind::kUnknown && !binfmt_misc_enabled();
    if (nameless || unknown) effect.will_succeed = false;
    if (interpreter.path.empty()) break;
    file = view.find(AT_FDCWD, interpreter.path, true);
    too_long = file.accept_too_long_path() || too_long;
    if (!file.regular() || scripts == kMostScripts || !view.may(file, X_OK)) {
      effect.will_succeed = false;
      break;
    }
    add_read(effect, file);
    if (interpreter.last()) break;
  }
  if (too_long) return long_path_effect(view, "ran", given, effect.will_succeed);
  return effect;
}

}  // namespace assay::collect
