// What execve and execveat do: the process becomes the program, and the kernel reads files of which
// the process knows nothing: interpreters of scripts, and the loader that an ELF file names.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "observe/collect/call_effect.h"
#include "observe/collect/remote_status.h"
#include "observe/collect/stamp.h"

namespace assay::collect {
namespace {

using wire::Op;

constexpr int kMostScripts = 5;         // interpreters that are scripts, one after the other
constexpr std::size_t kHeadSize = 256;  // what the kernel looks at
constexpr std::size_t kMostSegments = 64;

struct Program {
  enum class Kind { kElf, kScript, kUnknown, kUnreadable } kind = Kind::kUnreadable;
  std::string interpreter;  // empty: none
};

template <class Header, class Segment>
std::string elf_interpreter(int fd, const std::array<char, kHeadSize>& head) {
  Header header;
  std::memcpy(&header, head.data(), sizeof header);
  if (header.e_phentsize != sizeof(Segment)) return {};
  for (std::size_t i = 0; i < std::min<std::size_t>(header.e_phnum, kMostSegments); ++i) {
    Segment segment;
    const off_t at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return {};
    if (segment.p_type != PT_INTERP || segment.p_filesz < 2 || segment.p_filesz > PATH_MAX) {
      continue;
    }
    std::string path(segment.p_filesz, '\0');
    if (::pread(fd, path.data(), path.size(), static_cast<off_t>(segment.p_offset)) !=
        static_cast<ssize_t>(path.size())) {
      return {};
    }
    path.resize(std::strlen(path.c_str()));
    return path;
  }
  return {};
}

// "#! /bin/sh -e" -> "/bin/sh"
std::string script_interpreter(std::string_view head) {
  head.remove_prefix(2);
  head = head.substr(0, head.find_first_of(std::string_view("\n\0", 2)));
  const std::size_t begin = head.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  head.remove_prefix(begin);
  return std::string(head.substr(0, head.find_first_of(" \t")));
}

Program look_into(const Found& file) {
  Program program;
  const std::string path = fmt::format("/proc/self/fd/{}", file.fd.get());
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return program;
  std::array<char, kHeadSize> head{};
  const ssize_t length = ::pread(fd.get(), head.data(), head.size(), 0);
  if (length < 0) return program;
  const std::string_view text(head.data(), static_cast<std::size_t>(length));
  program.kind = Program::Kind::kUnknown;
  if (text.starts_with("#!")) {
    program.kind = Program::Kind::kScript;
    program.interpreter = script_interpreter(text);
  } else if (text.starts_with(ELFMAG) && text.size() >= sizeof(Elf32_Ehdr)) {
    program.kind = Program::Kind::kElf;
    program.interpreter = head[EI_CLASS] == ELFCLASS32
                              ? elf_interpreter<Elf32_Ehdr, Elf32_Phdr>(fd.get(), head)
                              : elf_interpreter<Elf64_Ehdr, Elf64_Phdr>(fd.get(), head);
  }
  return program;
}

// Whether programs of other kinds can be run here (binfmt_misc): then we cannot know which.
bool other_kinds_run() {
  return ::access("/proc/sys/fs/binfmt_misc/register", F_OK) == 0;
}

void add_read(Effect& effect, const Found& file) {
  effect.told.push_back({.op = Op::kRead, .stamp = stamp_of(file.status), .path = file.path});
}

// Whether the program would have got rights that the process does not have, and will not.
bool loses_rights(const RemoteView& view, const Found& file) {
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

std::optional<Effect> exec_effect(const RemoteView& view, Given given, std::uint64_t flags,
                                  std::string words) {
  Found file = given.path.empty() && (flags & AT_EMPTY_PATH) != 0
                   ? view.find_descriptor(given.dirfd)
                   : view.find(given.dirfd, given.path, (flags & AT_SYMLINK_NOFOLLOW) == 0);
  if (!file.regular()) return std::nullopt;
  Effect effect;
  effect.will_succeed = view.may(file, X_OK);
  effect.told.push_back({.op = Op::kExec,
                         .stamp = stamp_of(file.status),
                         .path = file.path,
                         .other = std::move(words)});
  if (loses_rights(view, file)) {
    effect.told.push_back(
        {.op = Op::kMissed,
         .flags = wire::flag::kNoStamp,
         .path = "setuid",
         .other = fmt::format("{} is setuid and ran without its privileges", file.path)});
  }
  add_read(effect, file);
  for (int scripts = 0;; ++scripts) {
    const Program program = look_into(file);
    if (program.kind == Program::Kind::kUnknown && !other_kinds_run()) effect.will_succeed = false;
    if (program.kind == Program::Kind::kScript && program.interpreter.empty()) {
      effect.will_succeed = false;
    }
    if (program.interpreter.empty()) break;
    file = view.find(AT_FDCWD, program.interpreter, true);
    if (!file.regular() || scripts == kMostScripts || !view.may(file, X_OK)) {
      effect.will_succeed = false;
      break;
    }
    add_read(effect, file);
    if (program.kind == Program::Kind::kElf) break;  // a loader needs no loader
  }
  return effect;
}

}  // namespace assay::collect
