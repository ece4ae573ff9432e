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
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "observe/collect/call/call_table.h"
#include "observe/collect/call/remote_memory.h"
#include "observe/collect/call/remote_status.h"
#include "observe/collect/call/stopped_call.h"
#include "observe/collect/event/event.h"
#include "observe/collect/process/proc.h"
#include "observe/wire/gate.h"
#include "observe/wire/pass_descriptor.h"

namespace assay::collect {
namespace {

// Newer than Debian 12's headers (Linux 6.6): the stopped process and the collector run on the same
// CPU in turn. Measured: 4 µs per call instead of 39.
constexpr unsigned long kSetFlags = _IOW(SECCOMP_IOC_MAGIC, 4, std::uint64_t);
constexpr unsigned long kSyncWakeUp = 1;

long seccomp(unsigned operation, unsigned flags, void* argument) {
  return ::syscall(SYS_seccomp, operation, flags, argument);
}

struct Sizes {
  std::size_t request = sizeof(seccomp_notif);
  std::size_t response = sizeof(seccomp_notif_resp);
};

// A kernel newer than the headers may write larger structures.
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
  std::memset(buffer, 0, size);  // the kernel requires it
  return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, buffer) == 0 ? 0 : errno;
}

void continue_call(int listener, std::uint64_t id, std::vector<std::byte>& buffer) {
  std::fill(buffer.begin(), buffer.end(), std::byte{0});
  auto* response = reinterpret_cast<seccomp_notif_resp*>(buffer.data());
  response->id = id;
  response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // ENOENT: the process was killed in the meantime.
  ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, response);
}

// kOver: no process is left under the filter.
enum class WaitResult { kCall, kNothing, kOver };
WaitResult wait_for_call(int listener, int timeout_ms) {
  pollfd waiting{listener, POLLIN, 0};
  if (::poll(&waiting, 1, timeout_ms) <= 0) return WaitResult::kNothing;
  if ((waiting.revents & POLLIN) != 0) return WaitResult::kCall;
  return (waiting.revents & (POLLHUP | POLLERR)) != 0 ? WaitResult::kOver : WaitResult::kNothing;
}

// eBPF reports plain reads, execs, and lookups of missing files. New files are reported by both:
// another program may create the file between this check and the call, and then eBPF sees an
// existing file.
bool seen_by_ebpf(const CallEffect::ExpectedEvent& event) {
  switch (event.op) {
    case wire::RecordOp::kRead:
      return (event.flags & wire::flag::kWritable) == 0;
    case wire::RecordOp::kExec:
    case wire::RecordOp::kList:
    case wire::RecordOp::kAbsent:
    case wire::RecordOp::kQueried:
      return true;
    default:
      return false;
  }
}

bool changes_names(wire::RecordOp op) {
  return op == wire::RecordOp::kRename || op == wire::RecordOp::kDelete ||
         op == wire::RecordOp::kLink || op == wire::RecordOp::kRelink;
}

constexpr std::size_t kRequestPage = 4096;

// Calls handled before the loop checks its other descriptors.
constexpr int kBurst = 256;

}  // namespace

int install_filter(const std::vector<sock_filter>& program, bool listener) {
  sock_fprog description{static_cast<unsigned short>(program.size()),
                         const_cast<sock_filter*>(program.data())};
  unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  // Without WAIT_KILLABLE_RECV (Linux 5.19) a signal handler interrupts the wait and the call is
  // reported twice.
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
  sending_.reset();  // so that receiving fails if the child exits
  listener_.reset(wire::receive_descriptor(receiving_.get()));
  receiving_.reset();
  if (!listener_.valid()) return false;
  ::ioctl(listener_.get(), kSetFlags, kSyncWakeUp);
  return true;
}

void Gate::adapt_wakeups(bool others_wait) {
  if (same_processor_ == !others_wait) return;
  same_processor_ = !others_wait;
  ::ioctl(listener_.get(), kSetFlags, same_processor_ ? kSyncWakeUp : 0UL);
}

const Gate::Member& Gate::member(pid_t thread, bool fresh) {
  auto [at, is_new] = members_.try_emplace(thread);
  if (is_new || fresh) at->second = {process_of(thread), parent_of(thread)};
  return at->second;
}

void Gate::record(pid_t thread, const SystemCall& call, std::uint64_t id, EventLog& log,
                  EventSink& sink) {
  hooks_.before();
  const CallRow* row = find_call(call.arch, call.number);
  if (row == nullptr || handle_shim_call(thread, *row, call, log)) return;
  if (mode_ == GateMode::kChanges && row->kind == CallKind::kIoUringSetup) return hooks_.ring();
  const std::optional<CallEffect> effect = effect_of(thread, call);
  if (!effect || !(effect->will_succeed || effect->reports_failure)) return;
  // If the process was killed, its pid may be another process's by now and what was read is
  // invalid.
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) return;
  // Earlier reads must be delivered before their files change, and earlier paths resolved before
  // they lead elsewhere. A call that only reads does not wait for that.
  const bool moves =
      std::ranges::any_of(effect->events, changes_names, &CallEffect::ExpectedEvent::op);
  if (moves || !effect->changes.empty()) log.drain(sink);
  for (const CallEffect::PendingChange& coming : effect->changes) {
    sink.before_change(coming.path, coming.stamp, coming.change);
  }
  for (const CallEffect::ExpectedEvent& event : effect->events) {
    hooks_.expected(event);
    if (mode_ == GateMode::kChanges && seen_by_ebpf(event)) continue;
    const Member& who = member(thread, event.op == wire::RecordOp::kExec);
    log.append({.op = event.op,
                .source = wire::Source::kGate,
                .flags = event.flags,
                .thread = thread,
                .process = who.process,
                .parent = who.parent,
                .time_ns = monotonic_ns(),
                .stamp = event.stamp,
                .path = event.path,
                .other = event.other});
    if (changes_names(event.op)) log.header().epoch.fetch_add(1, std::memory_order_release);
  }
  // Paths below a directory are resolved before the directory moves.
  if (moves) log.drain(sink);
}

bool Gate::serve(EventLog& log, EventSink& sink) {
  WaitResult waiting = wait_for_call(listener_.get(), 0);
  for (int i = 0; i < kBurst && waiting == WaitResult::kCall; ++i) {
    if (receive_notification(listener_.get(), shared_request(), request_size_) == 0) {
      const auto* request = reinterpret_cast<const seccomp_notif*>(shared_request());
      SystemCall call{request->data.arch, request->data.nr, {}};
      std::copy(std::begin(request->data.args), std::end(request->data.args),
                call.arguments.begin());
      record(static_cast<pid_t>(request->pid), call, request->id, log, sink);
      waiting = wait_for_call(listener_.get(), 0);
      adapt_wakeups(waiting == WaitResult::kCall);
      continue_call(listener_.get(), request->id, response_);
      log.drain(sink);
    }
    waiting = wait_for_call(listener_.get(),
                            0);  // the process that continued may have made its next call
  }
  return waiting != WaitResult::kOver;
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

void take_over_gate(int listener) {
  std::vector<std::byte> response(notification_sizes().response);
  // If that call was handled already, or there was none, the kernel returns ENOENT.
  continue_call(listener, reinterpret_cast<const seccomp_notif*>(shared_request())->id, response);
  allow_all_calls(listener, -1);
}

bool allow_all_calls(int listener, int timeout_ms) {
  const Sizes sizes = notification_sizes();
  std::vector<std::byte> response(sizes.response);
  for (;;) {
    const WaitResult waiting = wait_for_call(listener, timeout_ms);
    if (waiting == WaitResult::kOver) return false;
    if (waiting == WaitResult::kNothing && timeout_ms >= 0) return true;
    if (waiting == WaitResult::kNothing ||
        receive_notification(listener, shared_request(), sizes.request) != 0) {
      continue;
    }
    // This process may be killed here as well, hence the shared request.
    continue_call(listener, reinterpret_cast<const seccomp_notif*>(shared_request())->id, response);
  }
}

namespace {

// See wire/gate.h. Where there is no shim there is no such page, and nothing happens.
void disable_shim_gate(pid_t thread) {
  struct {
    std::array<unsigned char, 8> code;
    std::uint64_t state;
  } page{};
  static_assert(sizeof page == wire::kGateStateAddress + 8 - wire::kGatePage);
  if (read_remote(thread, wire::kGatePage, &page, sizeof page) != 0 ||
      std::memcmp(page.code.data(), wire::kGateCode, sizeof wire::kGateCode) != 0) {
    return;
  }
  const std::uint32_t aside = wire::kShimDisabled;
  write_remote(thread, page.state, &aside, sizeof aside);
}

}  // namespace

bool Gate::handle_shim_call(pid_t thread, const CallRow& row, const SystemCall& call,
                            EventLog& log) {
  if (row.kind == CallKind::kNewDirectory) {
    log.header().epoch.fetch_add(1, std::memory_order_release);
    return true;
  }
  if (row.kind == CallKind::kSandbox || row.kind == CallKind::kSeccomp) {
    log.header().sandboxes.fetch_add(1, std::memory_order_release);
    disable_shim_gate(thread);
    return true;
  }
  // No process can have added a filter before its first stopped call, the exec of the command.
  if (filters_ < 0) filters_ = read_remote_status(thread).filters;
  if (log.header().sandboxes.load(std::memory_order_relaxed) == 0 || log_path_.empty() ||
      row.kind != CallKind::kOpenAt) {
    return false;
  }
  std::array<char, PATH_MAX> path;
  std::size_t length = 0;
  if (read_remote_text(thread, call.arguments[1], path.data(), path.size(), length) != 0 ||
      std::string_view(path.data(), length) != log_path_) {
    return false;
  }
  // The shim asks whether it is in a sandbox (wire::LogHeader::sandboxes). If the kernel does not
  // tell, it is switched off, which is only slower.
  const int filters = read_remote_status(thread).filters;
  if (filters == 0 || filters > filters_) disable_shim_gate(thread);
  return true;
}

}  // namespace assay::collect
