// The judges behind effect_of(): what a call with these arguments will do to the files there are.
// One file per family: open_effect.cc, name_effect.cc, exec_effect.cc; missed_effect.cc is for what
// cannot be told.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "observe/collect/call/path_call.h"
#include "observe/collect/call/remote_path.h"

namespace assay::collect {

// A path as the thread gave it.
struct Given {
  int dirfd = -100;  // AT_FDCWD
  std::string_view path;
};

std::optional<Effect> open_effect(const RemoteView& view, Given file, std::uint64_t flags,
                                  std::uint64_t resolve);
std::optional<Effect> mknod_effect(const RemoteView& view, Given file, std::uint64_t mode);
std::optional<Effect> truncate_effect(const RemoteView& view, Given file, std::uint64_t length);

// `flags` as utimensat's. Nothing is told: only that times will be others.
std::optional<Effect> times_effect(const RemoteView& view, Given file, std::uint64_t flags);

std::optional<Effect> unlink_effect(const RemoteView& view, Given file);
// `flags` as renameat2's.
std::optional<Effect> rename_effect(const RemoteView& view, Given from, Given to,
                                    std::uint64_t flags);
std::optional<Effect> symlink_effect(const RemoteView& view, Given link);
// `flags` as linkat's.
std::optional<Effect> link_effect(const RemoteView& view, Given from, Given to,
                                  std::uint64_t flags);

// `flags` as execveat's. The first event is the program's, without its words.
std::optional<Effect> exec_effect(const RemoteView& view, Given file, std::uint64_t flags);

// An effect that only says what cannot be seen: a word for programs, and of the thread's program
// what it does.
Effect missed_effect(const RemoteView& view, std::string_view what, std::string_view text);
// The same of a file that is_untold(); `did` is "opened" or so.
Effect long_path_effect(const RemoteView& view, std::string_view did, Given file, bool succeeds);

// What is said of a process that is in another mount namespace, or changes the mounts of ours.
inline constexpr std::string_view kNamespace = "namespace";
inline constexpr std::string_view kOtherMounts =
    "has mounts of its own: files may have other names there, or none";

// Adds to effect.ahead what is about to change, unless it is not a file whose content could be
// taken: the files of /proc and /sys are made up as they are read.
void add_ahead(Effect& effect, const Found& file, Change change);

}  // namespace assay::collect
