// Gate: the seccomp filter that stops the command's path-class system calls, and the collector's
// end of it. See wire/gate.h for what it lets pass and why nothing can go round it.
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
#include "observe/collect/call/path_call.h"
#include "observe/collect/event/event.h"
#include "observe/collect/event/log.h"

namespace assay::collect {

enum class GateMode {
  kEverything,  // all path-class calls, except from the shim's instruction
  kChanges,     // only what changes existing files: eBPF sees the rest
};

// The filter as a program. `action` is what happens to a stopped call: SECCOMP_RET_USER_NOTIF here,
// SECCOMP_RET_TRACE for ptrace.
std::vector<sock_filter> gate_filter(GateMode mode, std::uint32_t action);

// Installs a filter on the calling process, with NEW_LISTENER if asked for, and returns the
// listener (or 0), -1 with errno on failure. System calls only: it runs between fork and exec.
// Without CAP_SYS_ADMIN the kernel wants no_new_privs, so set-user-id programs lose their powers.
int install_filter(const std::vector<sock_filter>& program, bool listener);

// What a collector with eyes besides the gate has done around each stopped call.
struct GateHooks {
  // Before the call is looked at: whatever the others saw so far goes into the log here.
  std::function<void()> before = [] {};
  // What the call will do, while it still waits.
  std::function<void(const Effect::Told&)> told = [](const Effect::Told&) {};
};

class Gate {
 public:
  // `log` is the path of the event log as the shim opens it.
  explicit Gate(GateMode mode, std::string log = {}, GateHooks hooks = {});

  // In the child, between fork and exec.
  bool install();
  // In the collector, after launch(): takes the listener that install() sent. False if none came.
  bool receive();

  [[nodiscard]] int listener() const { return listener_.get(); }
  // Answers every call that is waiting: asks path_call, drains the log and tells the sink what is
  // about to change, appends the events and lets the call go on. Returns false when no process is
  // left that could be stopped.
  bool serve(Log& log, Sink& sink);

 private:
  struct Member {
    pid_t process = 0;
    pid_t parent = 0;
  };
  void tell(pid_t thread, const SystemCall& call, std::uint64_t id, Log& log, Sink& sink);
  const Member& member(pid_t thread, bool fresh);
  // A process that goes on alone is woken quickest on this processor, which is idle as soon as we
  // sleep, and whose next call wakes us where it stops. While others wait, it would only wait for
  // us to be done with them.
  void adapt_to(bool others_wait);
  // True if that was all there is to the call (gate_shim.cc).
  bool about_the_shim(pid_t thread, const CallRow& row, const SystemCall& call, Log& log);

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
  int filters_ = -1;  // upon a process that has added none
};

// Where the call that is being answered stands: memory that processes forked after the first call
// of this function share. If the collector, or a guard in its place, is killed in the middle of an
// answer, the kernel waits for that answer and asks nobody else; whoever knows the call's number
// can give it.
std::byte* shared_request();
// For another process than the collector, when that is gone: answers what it left unanswered and
// waves everything through until nobody is left.
void take_gate_over(int listener);

// Keeps the command going when nobody records any more: lets stopped calls go on unseen until none
// comes for `timeout_ms` (-1: until there is nobody left). False when nobody is left.
bool wave_through(int listener, int timeout_ms);

// Whether the gate can be installed here; if not, why. Tried in a child.
base::Result<void> gate_available();
// Whether this process is under somebody's gate already, most likely another `assay run`'s. There
// can be one only, and it also takes precedence over ptrace's filter.
bool under_another_gate();

}  // namespace assay::collect
