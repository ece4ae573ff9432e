#include "observe/collect/call/stopped_call.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "observe/collect/call/call_effect.h"
#include "observe/collect/call/call_table.h"
#include "observe/collect/call/remote_memory.h"
#include "observe/collect/call/remote_path.h"
#include "observe/collect/call/remote_status.h"

namespace assay::collect {
namespace {

constexpr std::size_t kMostArgumentBytes = std::size_t{32} << 10U;

// fanotify_init's flags under which events carry names instead of open files.
constexpr std::uint64_t kFanotifyNames = 0x200;  // FAN_REPORT_FID

// One stopped call. Holds its path arguments while its effect is determined.
class Reading {
 public:
  Reading(pid_t thread, const SystemCall& call, CallKind kind)
      : view_(thread), call_(call), kind_(kind) {}

  std::optional<CallEffect> effect();

 private:
  [[nodiscard]] std::uint64_t argument(std::size_t index) const { return call_.arguments[index]; }
  [[nodiscard]] bool narrow() const {
    return call_.arch == AUDIT_ARCH_I386 || (call_.number & kX32Bit) != 0;
  }

  // The path at argument `index`, relative to the descriptor before it if `at` is set. On failure
  // the error is kept and the path is empty.
  PathArgument given(std::size_t index, bool at, std::array<char, PATH_MAX>& text) {
    PathArgument result;
    std::size_t length = 0;
    if (at) result.dirfd = static_cast<int>(argument(index - 1));
    const int error =
        read_remote_text(view_.thread(), argument(index), text.data(), text.size(), length);
    if (error_ == 0) error_ = error;
    if (error == 0) result.path = {text.data(), length};
    return result;
  }
  PathArgument file(std::size_t index, bool at) { return given(index, at, first_); }

  template <class Judge, class... Rest>
  std::optional<CallEffect> one(const PathArgument& path, Judge judge, Rest... rest) {
    return error_ == 0 ? judge(view_, path, rest...) : std::nullopt;
  }

  std::optional<CallEffect> judged();
  std::optional<CallEffect> open2();
  std::optional<CallEffect> rename(bool at, std::uint64_t flags);
  std::optional<CallEffect> link(bool at, std::uint64_t flags);
  std::optional<CallEffect> times(std::uint64_t flags);
  std::optional<CallEffect> exec(bool at, std::uint64_t flags);
  std::optional<CallEffect> other_mounts(bool always_allowed);
  std::optional<CallEffect> missed(std::string_view what, std::string_view text) {
    return missed_effect(view_, what, text);
  }

  RemoteView view_;
  const SystemCall& call_;
  CallKind kind_;
  int error_ = 0;
  std::array<char, PATH_MAX> first_;
  std::array<char, PATH_MAX> second_;
};

std::optional<CallEffect> Reading::effect() {
  std::optional<CallEffect> effect = judged();
  if (error_ == EPERM) {
    return missed("unreadable", "cannot be inspected, so its file operations are not seen");
  }
  return error_ == 0 ? std::move(effect) : std::nullopt;
}

// Many programs only try this, without permission.
std::optional<CallEffect> Reading::other_mounts(bool always_allowed) {
  RemoteView::views_may_differ();
  std::optional<CallEffect> effect = missed_effect(view_, kNamespace, kOtherMounts);
  effect->will_succeed = always_allowed || read_remote_status(view_.thread()).administers;
  return effect;
}

std::optional<CallEffect> Reading::open2() {
  open_how how{};
  // There are no shorter versions of this structure yet, and longer ones begin the same way.
  error_ = read_remote(view_.thread(), argument(2), &how, sizeof how);
  return one(file(1, true), open_effect, how.flags, how.resolve);
}

std::optional<CallEffect> Reading::rename(bool at, std::uint64_t flags) {
  const PathArgument from = given(at ? 1 : 0, at, first_);
  const PathArgument to = given(at ? 3 : 1, at, second_);
  return error_ == 0 ? rename_effect(view_, from, to, flags) : std::nullopt;
}

std::optional<CallEffect> Reading::link(bool at, std::uint64_t flags) {
  const PathArgument from = given(at ? 1 : 0, at, first_);
  const PathArgument to = given(at ? 3 : 1, at, second_);
  return error_ == 0 ? link_effect(view_, from, to, flags) : std::nullopt;
}

std::optional<CallEffect> Reading::times(std::uint64_t flags) {
  // futimens(3): no path at all.
  if (argument(1) == 0) {
    return times_effect(view_, {.dirfd = static_cast<int>(argument(0)), .path = {}}, AT_EMPTY_PATH);
  }
  return one(file(1, true), times_effect, flags);
}

std::optional<CallEffect> Reading::exec(bool at, std::uint64_t flags) {
  const PathArgument program = file(at ? 1 : 0, at);
  if (error_ != 0) return std::nullopt;
  std::optional<CallEffect> effect = exec_effect(view_, program, flags);
  // Arguments are read only now: a search through PATH fails several times before it succeeds.
  if (!effect) return std::nullopt;
  std::string arguments;
  error_ = read_remote_arguments(view_.thread(), argument(at ? 2 : 1), narrow() ? 4 : 8,
                                 kMostArgumentBytes, arguments);
  if (CallEffect::ExpectedEvent& event = effect->events.front();
      event.op == wire::RecordOp::kExec) {
    event.other = std::move(arguments);
  }
  return error_ == 0 ? effect : std::nullopt;
}

std::optional<CallEffect> Reading::judged() {
  using enum CallKind;
  constexpr std::uint64_t kCreatFlags = O_CREAT | O_WRONLY | O_TRUNC;
  // One path, plain or after a descriptor, and the function that handles it.
  const auto plain = [&](auto judge, auto... rest) { return one(file(0, false), judge, rest...); };
  const auto at = [&](auto judge, auto... rest) { return one(file(1, true), judge, rest...); };
  switch (kind_) {
    case kOpen:
      return plain(open_effect, argument(1), 0U);
    case kOpenAt:
      return at(open_effect, argument(2), 0U);
    case kOpenAt2:
      return open2();
    case kCreat:
      return plain(open_effect, kCreatFlags, 0U);
    case kMknod:
      return plain(mknod_effect, argument(1));
    case kMknodAt:
      return at(mknod_effect, argument(2));
    case kTruncate:
      // A 32-bit call may pass the length in two arguments; it is then assumed to be non-zero.
      return plain(truncate_effect, narrow() ? 1U : argument(1));
    case kUnlink:
      return plain(unlink_effect);
    case kUnlinkAt:
      return (argument(2) & AT_REMOVEDIR) != 0 ? std::nullopt : at(unlink_effect);
    case kRename:
      return rename(false, 0);
    case kRenameAt:
      return rename(true, 0);
    case kRenameAt2:
      return rename(true, argument(4));
    case kLink:
      return link(false, 0);
    case kLinkAt:
      return link(true, argument(4));
    case kSymlink:
      return one(file(1, false), symlink_effect);
    case kSymlinkAt:
      return one(file(2, true), symlink_effect);
    case kSetTimes:
      return plain(times_effect, 0U);
    case kSetTimesAt:
      return times(0);
    case kSetTimesAtFlags:
      return times(argument(3));
    case kQuery:
      return plain(query_effect, QueryAnswer::kExistence);
    case kQueryAt:
      return at(query_effect, QueryAnswer::kExistence);
    case kStatus:
      return plain(query_effect, QueryAnswer::kSize);
    case kStatusAt:
      return at(query_effect, QueryAnswer::kSize);
    case kExec:
      return exec(false, 0);
    case kExecAt:
      return exec(true, argument(4));
    case kIoUringSetup:
      return uring_setup_effect(view_, argument(1));
    case kIoUringEnter:
      return uring_enter_effect(view_, static_cast<int>(argument(0)),
                                static_cast<std::uint32_t>(argument(1)),
                                static_cast<std::uint32_t>(argument(3)));
    case kOpenByHandle:
      return missed("open_by_handle_at", "opened a file by its handle instead of a path");
    case kPidfdGetfd:
      return missed("pidfd_getfd", "took an open file from another process");
    case kFanotify:
      if ((argument(0) & kFanotifyNames) != 0) return std::nullopt;
      return missed("fanotify", "is handed open files by fanotify");
    case kUnshare:
      if ((argument(0) & CLONE_NEWNS) == 0) return std::nullopt;
      return other_mounts((argument(0) & CLONE_NEWUSER) != 0);
    case kSetNs:
      if (argument(1) != 0 && (argument(1) & CLONE_NEWNS) == 0) return std::nullopt;
      return other_mounts(false);
    case kMount:
      return other_mounts(false);
    case kSeccomp:
      if (argument(0) != SECCOMP_SET_MODE_FILTER) return std::nullopt;
      if ((argument(1) & SECCOMP_FILTER_FLAG_NEW_LISTENER) == 0) return std::nullopt;
      return missed("seccomp",
                    "has system calls reported to a listener of its own, which hides them");
    case kNewRoot:
      RemoteView::views_may_differ();
      return std::nullopt;
    case kSandbox:
    case kNewDirectory:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CallEffect> effect_of(pid_t thread, const SystemCall& call) {
  const CallRow* row = find_call(call.arch, call.number);
  if (row == nullptr) return std::nullopt;
  return Reading(thread, call, row->kind).effect();
}

}  // namespace assay::collect
