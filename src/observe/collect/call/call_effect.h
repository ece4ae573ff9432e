// The parts of effect_of(): what a call with these arguments will do to the existing files. One
// file per family of calls: open_effect.cc, name_effect.cc, exec_effect.cc, uring_effect.cc;
// call_effect.cc has what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "observe/collect/call/remote_path.h"
#include "observe/collect/call/stopped_call.h"

namespace assay::collect {

// A path as the thread gave it.
struct PathArgument {
  int dirfd = -100;  // AT_FDCWD
  std::string_view path;
};

std::optional<CallEffect> open_effect(const RemoteView& view, PathArgument file,
                                      std::uint64_t flags, std::uint64_t resolve);
// stat and similar calls. What a query tells about an existing file, beside that it exists and what
// kind of file it is.
enum class QueryAnswer { kExistence, kSize };
std::optional<CallEffect> query_effect(const RemoteView& view, PathArgument file,
                                       QueryAnswer answer);
std::optional<CallEffect> mknod_effect(const RemoteView& view, PathArgument file,
                                       std::uint64_t mode);
std::optional<CallEffect> truncate_effect(const RemoteView& view, PathArgument file,
                                          std::uint64_t length);

// `flags` as utimensat's. Gives no event, only a PendingChange of the timestamps.
std::optional<CallEffect> times_effect(const RemoteView& view, PathArgument file,
                                       std::uint64_t flags);

std::optional<CallEffect> unlink_effect(const RemoteView& view, PathArgument file);
// `flags` as renameat2's.
std::optional<CallEffect> rename_effect(const RemoteView& view, PathArgument from, PathArgument to,
                                        std::uint64_t flags);
std::optional<CallEffect> symlink_effect(const RemoteView& view, PathArgument link);
// `flags` as linkat's.
std::optional<CallEffect> link_effect(const RemoteView& view, PathArgument from, PathArgument to,
                                      std::uint64_t flags);

// `flags` as execveat's. The first event is the program's, without its arguments.
std::optional<CallEffect> exec_effect(const RemoteView& view, PathArgument file,
                                      std::uint64_t flags);

// io_uring_setup: reports a ring whose operations cannot be followed. io_uring_enter(descriptor,
// to_submit, …, flags): the effect of the operations that it submits.
std::optional<CallEffect> uring_setup_effect(const RemoteView& view, std::uint64_t parameters);
std::optional<CallEffect> uring_enter_effect(const RemoteView& view, int descriptor,
                                             std::uint32_t to_submit, std::uint32_t flags);

// An effect that only reports what cannot be observed: `what` for programs, and a text that
// continues the name of the thread's program.
CallEffect missed_effect(const RemoteView& view, std::string_view what, std::string_view text);
// The same for a file that has_too_long_path(); `did` is "opened" or the like.
CallEffect long_path_effect(const RemoteView& view, std::string_view did, PathArgument file,
                            bool succeeds);

// Reported for a process in another mount namespace, or one that changes this namespace's mounts.
inline constexpr std::string_view kNamespace = "namespace";
inline constexpr std::string_view kOtherMounts =
    "has mounts of its own: files may have other names there, or none";

// Adds a coming change to the effect, unless the file's content cannot be saved: files of /proc and
// /sys are generated when they are read.
void add_change(CallEffect& effect, const RemoteFile& file, Change change);

}  // namespace assay::collect
