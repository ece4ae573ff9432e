#include "observe/collect/gate/gate.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "observe/collect/call/call_table.h"
#include "observe/collect/call/path_call.h"
#include "observe/collect/event/clock.h"
#include "observe/collect/process/proc.h"
#include "observe/wire/pass_descriptor.h"

namespace assay::collect {
namespace {

// Newer than Debian 12's headers (Linux 6.6): the stopped process and the collector hand one
// processor to each other. Measured: 4 µs per call instead of 39.
constexpr unsigned long kSetFlags = _IOW(SECCOMP_IOC_MAGIC, 4, std::uint64_t);
constexpr unsigned long kSyncWakeUp = 1;

long seccomp(unsigned operation, unsigned flags, void* argument) {
  return ::syscall(SYS_seccomp, operation, flags, argument);
}

struct Sizes {
  std::size_t request = sizeof(seccomp_notif);
  std::size_t response = sizeof(seccomp_notif_resp);
};

// A kernel newer than our headers may write more than they know.
Sizes notification_sizes() {
  seccomp_notif_sizes sizes{};
  Sizes out;
  if (seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0) {
    out.request = std::max<std::size_t>(out.request, sizes.seccomp_notif);
    out.response = std::max<std::size_t>(out.response, sizes.seccomp_notif_resp);
  }
  return out;
}

// errno of the ioctl, or 0.
int receive_notification(int listener, std::byte* buffer, std::size_t size) {
  std::memset(buffer, 0, size);  // the kernel insists
  return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, buffer) == 0 ? 0 : errno;
}

void let_go_on(int listener, std::uint64_t id, std::vector<std::byte>& buffer) {
  std::fill(buffer.begin(), buffer.end(), std::byte{0});
  auto* response = reinterpret_cast<seccomp_notif_resp*>(buffer.data());
  response->id = id;
  response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // ENOENT: the process was killed meanwhile.
  ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, response);
}

// Waits for a call. False when nobody is left to make one.
enum class Waiting { kCall, kNothing, kOver };
Waiting look(int listener, int timeout_ms) {
  pollfd waiting{listener, POLLIN, 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return Waiting::kNothing;
  if ((waiting.revents & POLLIN) != 0) return Waiting::kCall;
  return (waiting.revents & (POLLHUP | POLLERR)) != 0 ? Waiting::kOver : Waiting::kNothing;
}

// Beside eBPF, which sees plain reads and programs itself. New files are told by both: between our
// look and the call another program may make the file, and then eBPF sees a file that was there.
bool seen_by_ebpf(const Effect::Told& told) {
  switch (told.op) {
    case wire::Op::kRead:
      return (told.flags & wire::flag::kWritable) == 0;
    case wire::Op::kExec:
      return true;
    default:
      return false;
  }
}

bool names_move(wire::Op op) {
  return op == wire::Op::kRename || op == wire::Op::kDelete || op == wire::Op::kLink ||
         op == wire::Op::kRelink;
}

constexpr std::size_t kRequestPage = 4096;

// Calls answered before the loop looks at anything else.
constexpr int kBurst = 256;

}  // namespace

int install_filter(const std::vector<sock_filter>& program, bool listener) {
  sock_fprog description{static_cast<unsigned short>(program.size()),
                         const_cast<sock_filter*>(program.data())};
  unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  // Without the second a signal handler interrupts the wait and the call is seen twice
  // (Linux 5.19).
  if (listener) flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  for (;;) {
    const long result = seccomp(SECCOMP_SET_MODE_FILTER, flags, &description);
    if (result >= 0) return static_cast<int>(result);
    if (errno == EINVAL && (flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) != 0) {
      flags &= ~static_cast<unsigned>(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    } else if (errno != EACCES || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
               ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
      return -1;
    }
  }
}

Gate::Gate(GateMode mode, std::string log, GateHooks hooks)
    : mode_(mode),
      log_path_(std::move(log)),
      hooks_(std::move(hooks)),
      filter_(gate_filter(mode, SECCOMP_RET_USER_NOTIF)) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0) {
    sending_.reset(ends[0]);
    receiving_.reset(ends[1]);
  }
  const Sizes sizes = notification_sizes();
  request_size_ = sizes.request;
  response_.resize(sizes.response);
}

bool Gate::install() {
  const int listener = install_filter(filter_, true);
  if (listener < 0) return false;
  const bool sent = wire::send_descriptor(sending_.get(), listener);
  ::close(listener);
  return sent;
}

bool Gate::receive() {
  sending_.reset();  // so that a child that failed reads as the end
  listener_.reset(wire::receive_descriptor(receiving_.get()));
  receiving_.reset();
  if (!listener_.valid()) return false;
  ::ioctl(listener_.get(), kSetFlags, kSyncWakeUp);
  return true;
}

void Gate::adapt_to(bool others_wait) {
  if (same_processor_ == !others_wait) return;
  same_processor_ = !others_wait;
  ::ioctl(listener_.get(), kSetFlags, same_processor_ ? kSyncWakeUp : 0UL);
}

const Gate::Member& Gate::member(pid_t thread, bool fresh) {
  auto [at, is_new] = members_.try_emplace(thread);
  if (is_new || fresh) at->second = {process_of(thread), parent_of(thread)};
  return at->second;
}

void Gate::tell(pid_t thread, const SystemCall& call, std::uint64_t id, Log& log, Sink& sink) {
  hooks_.before();
  const CallRow* row = find_call(call.arch, call.number);
  if (row == nullptr || about_the_shim(thread, *row, call, log)) return;
  const std::optional<Effect> effect = effect_of(thread, call);
  if (!effect || !effect->will_succeed) return;
  // If the process died meanwhile, its number may be another's and what was read nonsense.
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) return;
  // What was read before is known before it changes, and paths are understood before they lead
  // elsewhere. Nothing else has to be, and so a call that only reads does not wait for it.
  const bool moves = std::ranges::any_of(effect->told, names_move, &Effect::Told::op);
  if (moves || !effect->ahead.empty()) log.drain(sink);
  for (const Effect::Ahead& ahead : effect->ahead) {
    sink.about_to_change(ahead.path, ahead.stamp, ahead.change);
  }
  for (const Effect::Told& told : effect->told) {
    hooks_.told(told);
    if (mode_ == GateMode::kChanges && seen_by_ebpf(told)) continue;
    const Member& who = member(thread, told.op == wire::Op::kExec);
    log.append({.op = told.op,
                .source = wire::Source::kGate,
                .flags = told.flags,
                .thread = thread,
                .process = who.process,
                .parent = who.parent,
                .time_ns = monotonic_ns(),
                .stamp = told.stamp,
                .path = told.path,
                .other = told.other});
    if (names_move(told.op)) log.header().epoch.fetch_add(1, std::memory_order_release);
  }
  // What is below a folder is looked at before the folder moves.
  if (moves) log.drain(sink);
}

bool Gate::serve(Log& log, Sink& sink) {
  Waiting waiting = look(listener_.get(), 0);
  for (int i = 0; i < kBurst && waiting == Waiting::kCall; ++i) {
    if (receive_notification(listener_.get(), shared_request(), request_size_) == 0) {
      const auto* request = reinterpret_cast<const seccomp_notif*>(shared_request());
      SystemCall call{request->data.arch, request->data.nr, {}};
      std::copy(std::begin(request->data.args), std::end(request->data.args),
                call.arguments.begin());
      tell(static_cast<pid_t>(request->pid), call, request->id, log, sink);
      waiting = look(listener_.get(), 0);
      adapt_to(waiting == Waiting::kCall);
      let_go_on(listener_.get(), request->id, response_);
      log.drain(sink);
    }
    waiting = look(listener_.get(), 0);  // again: the one that goes on may have asked already
  }
  return waiting != Waiting::kOver;
}

std::byte* shared_request() {
  static std::byte* const page = [] {
    void* mapped =
        ::mmap(nullptr, kRequestPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSAY_CHECK(mapped != MAP_FAILED, "a page of memory");
    return static_cast<std::byte*>(mapped);
  }();
  return page;
}

void take_gate_over(int listener) {
  std::vector<std::byte> response(notification_sizes().response);
  // Already answered, or never asked: the kernel says ENOENT and nothing happens.
  let_go_on(listener, reinterpret_cast<const seccomp_notif*>(shared_request())->id, response);
  wave_through(listener, -1);
}

bool wave_through(int listener, int timeout_ms) {
  const Sizes sizes = notification_sizes();
  std::vector<std::byte> response(sizes.response);
  for (;;) {
    const Waiting waiting = look(listener, timeout_ms);
    if (waiting == Waiting::kOver) return false;
    if (waiting == Waiting::kNothing && timeout_ms >= 0) return true;
    if (waiting == Waiting::kNothing ||
        receive_notification(listener, shared_request(), sizes.request) != 0) {
      continue;
    }
    // Whoever does this may be killed as well, here too.
    let_go_on(listener, reinterpret_cast<const seccomp_notif*>(shared_request())->id, response);
  }
}

}  // namespace assay::collect
