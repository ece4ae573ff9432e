// The effect of operations that a program submits to an io_uring: io_uring_enter is stopped, and
// each entry is handled like the system call that it stands for. Rings whose entries are submitted
// without a call (SQPOLL) are reported as missed when they are created.
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>

#include <array>
#include <map>
#include <string>

#include "observe/collect/call/call_effect.h"
#include "observe/collect/call/remote_memory.h"
#include "observe/collect/call/uring_ring.h"

namespace assay::collect {
namespace {

constexpr std::uint32_t kRegisteredRing = 1U << 4U;  // IORING_ENTER_REGISTERED_RING
constexpr std::string_view kWhat = "io_uring";

// The rings that a process of this run has made.
struct Rings {
  // Nothing if rings with several layouts are in use: which one a descriptor has is not known.
  std::optional<std::uint32_t> layout;
  int made = 0;
  bool had_others = false;  // it had inherited rings when it created its first
  // The descriptor of the ring, if the process has only ever had one; -1: not known.
  std::optional<int> only = {};
};

std::map<pid_t, Rings>& rings() {
  static std::map<pid_t, Rings> known;
  return known;
}

// Called before the ring is created.
void note_ring(pid_t process, std::uint32_t layout) {
  const auto [at, is_new] = rings().try_emplace(process, Rings{.layout = layout});
  Rings& of = at->second;
  if (is_new) of.had_others = !rings_of(process).empty();
  if (of.layout != layout) of.layout.reset();
  ++of.made;
  of.only.reset();
}

// A process may have inherited its rings.
std::optional<std::uint32_t> layout_of(pid_t process) {
  if (const auto found = rings().find(process); found != rings().end()) return found->second.layout;
  std::optional<std::uint32_t> only;
  for (const auto& [owner, of] : rings()) {
    if (!of.layout || (only && *only != *of.layout)) return std::nullopt;
    only = of.layout;
  }
  return only;
}

// The descriptor of a ring that is given by its index in the thread's table of registered rings.
// That table cannot be read, so the ring is known only if the process has created just one. The
// program may have closed the descriptor and kept the index. -1: not known.
int registered_ring(pid_t process) {
  const auto found = rings().find(process);
  if (found == rings().end() || found->second.made != 1 || found->second.had_others) return -1;
  std::optional<int>& only = found->second.only;
  if (!only) {
    const std::vector<int> open = rings_of(process);
    only = open.size() == 1 ? open.front() : -1;
  } else if (*only >= 0 && !is_ring(process, *only)) {
    only = -1;
  }
  return *only;
}

void add(CallEffect& to, CallEffect from) {
  for (CallEffect::PendingChange& change : from.changes) to.changes.push_back(std::move(change));
  for (CallEffect::ExpectedEvent& event : from.events) to.events.push_back(std::move(event));
}

class Submission {
 public:
  explicit Submission(const RemoteView& view) : view_(view) {}

  // The effect of one entry; nothing if it names no file, or would fail.
  std::optional<CallEffect> effect_of(const io_uring_sqe& entry) {
    const auto open_flags = std::uint64_t{entry.open_flags};
    switch (entry.opcode) {
      case IORING_OP_OPENAT: {
        const auto file = given(entry.fd, entry.addr, first_);
        return file ? open_effect(view_, *file, open_flags, 0) : std::nullopt;
      }
      case IORING_OP_OPENAT2: {
        open_how how{};
        const auto file = given(entry.fd, entry.addr, first_);
        if (!file || read_remote(view_.thread(), entry.addr2, &how, sizeof how) != 0) return {};
        return open_effect(view_, *file, how.flags, how.resolve);
      }
      case IORING_OP_UNLINKAT: {
        const auto file = given(entry.fd, entry.addr, first_);
        if (!file || (entry.unlink_flags & AT_REMOVEDIR) != 0) return std::nullopt;
        return unlink_effect(view_, *file);
      }
      case IORING_OP_RENAMEAT:
      case IORING_OP_LINKAT: {
        const auto from = given(entry.fd, entry.addr, first_);
        const auto to = given(static_cast<int>(entry.len), entry.addr2, second_);
        if (!from || !to) return std::nullopt;
        return entry.opcode == IORING_OP_LINKAT
                   ? link_effect(view_, *from, *to, entry.hardlink_flags)
                   : rename_effect(view_, *from, *to, entry.rename_flags);
      }
      case IORING_OP_SYMLINKAT: {
        const auto link = given(entry.fd, entry.addr2, first_);
        return link ? symlink_effect(view_, *link) : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

 private:
  using Text = std::array<char, PATH_MAX>;

  std::optional<PathArgument> given(int directory, std::uint64_t address, Text& text) {
    std::size_t length = 0;
    if (read_remote_text(view_.thread(), address, text.data(), text.size(), length) != 0) {
      return std::nullopt;
    }
    return PathArgument{directory, {text.data(), length}};
  }

  const RemoteView& view_;
  Text first_{}, second_{};
};

bool entry_changes_names(const io_uring_sqe& entry) {
  switch (entry.opcode) {
    case IORING_OP_UNLINKAT:
    case IORING_OP_RENAMEAT:
    case IORING_OP_LINKAT:
    case IORING_OP_SYMLINKAT:
    case IORING_OP_MKDIRAT:
      return true;
    case IORING_OP_OPENAT:
      return (entry.open_flags & O_CREAT) != 0;
    case IORING_OP_OPENAT2:
      return true;  // perhaps
    default:
      return false;
  }
}

bool names_files(const io_uring_sqe& entry) {
  return entry_changes_names(entry) || entry.opcode == IORING_OP_OPENAT;
}

}  // namespace

std::optional<CallEffect> uring_setup_effect(const RemoteView& view, std::uint64_t parameters) {
  io_uring_params given{};
  if (read_remote(view.thread(), parameters, &given, sizeof given) != 0) return std::nullopt;
  if (!is_followed(given.flags)) {
    return missed_effect(view, kWhat,
                         (given.flags & IORING_SETUP_SQPOLL) != 0
                             ? "has the kernel take its io_uring operations without a call "
                               "(SQPOLL), which cannot be seen"
                             : "uses an io_uring of a kind whose operations cannot be seen");
  }
  const std::uint32_t layout = layout_flags(given.flags);
  if (kernel_makes(given.flags)) note_ring(view.process(), layout);
  return std::nullopt;
}

std::optional<CallEffect> uring_enter_effect(const RemoteView& view, int descriptor,
                                             std::uint32_t to_submit, std::uint32_t flags) {
  const pid_t process = view.process();
  if ((flags & kRegisteredRing) != 0) descriptor = registered_ring(process);
  const auto layout = layout_of(process);
  const auto entries = descriptor >= 0 && layout
                           ? entries_to_submit(process, descriptor, *layout, to_submit)
                           : std::nullopt;
  if (!entries) {
    return missed_effect(view, kWhat, "uses an io_uring whose operations could not be read");
  }
  CallEffect all;
  Submission submission(view);
  bool names_changed = false;
  for (const io_uring_sqe& entry : *entries) {
    std::optional<CallEffect> effect = submission.effect_of(entry);
    if (effect && effect->will_succeed) {
      add(all, *std::move(effect));
    } else if (names_changed && names_files(entry)) {
      // It may concern a file that an earlier operation of the same call creates or renames.
      add(all,
          missed_effect(view, kWhat,
                        "submitted file operations that may depend on each other in one call"));
    }
    names_changed = names_changed || entry_changes_names(entry);
  }
  if (all.events.empty() && all.changes.empty()) return std::nullopt;
  all.will_succeed = true;
  all.opens_result = false;
  return all;
}

}  // namespace assay::collect
