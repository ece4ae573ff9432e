// Gate: the seccomp filter that stops the command's path-class system calls, and the seccomp
// notifier through which the collector handles those stopped calls. wire/gate.h explains which
// calls pass and why nothing can bypass it.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "observe/collect/call/call_table.h"
#include "observe/collect/call/stopped_call.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"
#include "observe/collect/gate/filter.h"

namespace assay::collect {

// Installs a filter on the calling process, with NEW_LISTENER if `listener`, and returns the
// listener (or 0), -1 with errno on failure. Only makes system calls: it runs between fork and
// exec. Without CAP_SYS_ADMIN the kernel requires no_new_privs, so set-user-id programs lose their
// privileges.
int install_filter(const std::vector<sock_filter>& program, bool listener);

// Called around each stopped call, for a collector with other sources of events.
struct GateHooks {
  // Before the call is examined: events of other sources so far are appended to the log here.
  std::function<void()> before = [] {};
  // With the expected events of the call, while it is stopped.
  std::function<void(const CallEffect::ExpectedEvent&)> expected =
      [](const CallEffect::ExpectedEvent&) {};
  // An io_uring is about to be set up (GateMode::kChanges only).
  std::function<void()> ring = [] {};
};

class Gate {
 public:
  // `log` is the path of the event log as the shim opens it.
  explicit Gate(GateMode mode, std::string log = {}, GateHooks hooks = {});

  // In the child, between fork and exec.
  bool install();
  // In the collector, after launch(): receives the listener that install() sent. False if none
  // came.
  bool receive();

  [[nodiscard]] int listener() const { return listener_.get(); }
  // Handles every waiting call: determines its effect (stopped_call.h), reports coming changes to
  // the sink, appends the events and lets the call continue. Returns false when no process is left
  // under the filter.
  bool serve(EventLog& log, EventSink& sink);

 private:
  struct Member {
    pid_t process = 0;
    pid_t parent = 0;
  };
  void record(pid_t thread, const SystemCall& call, std::uint64_t id, EventLog& log,
              EventSink& sink);
  const Member& member(pid_t thread, bool fresh);
  // A single process is woken fastest on this CPU, which is idle as soon as the collector sleeps,
  // and its next call wakes the collector on the same CPU. While other calls wait, that process
  // would have to wait until they are handled.
  void adapt_wakeups(bool others_wait);
  // Calls that concern the shim's own state. True if nothing else is to be done for the call.
  bool handle_shim_call(pid_t thread, const CallRow& row, const SystemCall& call, EventLog& log);

  GateMode mode_;
  std::string log_path_;
  GateHooks hooks_;
  std::vector<sock_filter> filter_;
  base::UniqueFd sending_;
  base::UniqueFd receiving_;
  base::UniqueFd listener_;
  std::size_t request_size_ = 0;     // of struct seccomp_notif, as large as this kernel's
  std::vector<std::byte> response_;  // struct seccomp_notif_resp
  std::unordered_map<pid_t, Member> members_;
  bool same_processor_ = true;
  int filters_ = -1;  // of a process that has added none itself
};

// The call being handled, in memory shared with processes forked after the first call of this
// function. If the collector, or a guard in its place, is killed before it responds, the kernel
// waits for that response and notifies no other process; with the call's id another process can
// respond.
std::byte* shared_request();
// For another process when the collector was killed: responds to the call that it was handling, and
// then lets all calls continue until no process is left under the filter.
void take_over_gate(int listener);

// Without recording: lets stopped calls continue until none comes for `timeout_ms` (-1: until no
// process is left). False when no process is left under the filter.
bool allow_all_calls(int listener, int timeout_ms);

// Whether the gate can be installed here, tried in a child; if not, why.
base::Result<void> gate_available();
// Whether this process is under another seccomp listener, most likely of another `assay run`. There
// can be only one, and it takes precedence over ptrace's filter.
bool under_another_gate();

}  // namespace assay::collect
