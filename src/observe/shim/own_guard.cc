#include "observe/shim/own_guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

constexpr int kReadyWithin_ms = 10'000;
constexpr int kOwnInstructions = 16;

// A stopped call that can do nothing: without a collector the filter answers before the kernel has
// looked at the path.
bool is_deserted() {
  return ordinary_call(SYS_truncate, "", 0) == -ENOSYS;
}

// Stops every call that the gate may stop, except from the shim's instruction. Longer than a jump
// of classic BPF can reach, so every number has its own return.
unsigned short write_filter(const wire::StoppedNumbers& stopped, sock_filter* program) {
  unsigned short size = 0;
  const auto add = [&](unsigned short code, std::uint32_t value, unsigned char yes = 0,
                       unsigned char no = 0) {
    program[size++] = {code, yes, no, value};
  };
  const auto stop = [&](std::uint32_t first, std::uint32_t end) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    for (std::uint32_t i = first; i < end; ++i) {
      add(BPF_JMP | BPF_JEQ | BPF_K, stopped.numbers[i], 0, 1);
      add(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  };
  constexpr auto kAddress = offsetof(seccomp_data, instruction_pointer);
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  add(BPF_JMP | BPF_JA, 5 + 2 + 2 * stopped.native);
  add(BPF_LD | BPF_W | BPF_ABS, kAddress);
  add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(wire::kGateReturn), 0, 3);
  add(BPF_LD | BPF_W | BPF_ABS, kAddress + 4);
  add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(wire::kGateReturn >> 32U), 0, 1);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  stop(0, stopped.native);
  stop(stopped.native, stopped.all);
  return size;
}

// For all threads, or for this one if they differ. The listener or a negative error number.
long install_filter(const sock_fprog& filter) {
  constexpr long kOne = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  constexpr long kAll = kOne | SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
  const auto install = [&](long flags) {
    return gate_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  };
  long listener = install(kAll);
  // A process that has given up root since: without this it could execute nothing at all.
  if (listener == -EACCES && gate_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0) == 0) {
    listener = install(kAll);
  }
  return listener == -ESRCH || listener == -EINVAL ? install(kOne) : listener;
}

bool send_listener(int socket, int listener) {
  char byte = 0;
  iovec content{&byte, sizeof byte};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  __builtin_memcpy(CMSG_DATA(rights), &listener, sizeof listener);
  return ordinary_call(SYS_sendmsg, socket, &message, MSG_NOSIGNAL) == 1;
}

// In a grandchild, so that the program never sees a child that it did not start: this library, as a
// program (guard_program.cc), which then has none of the program's memory and files.
[[noreturn]] void become_guard(const char* library, int socket) {
  char name[] = "assay-guard";
  char* arguments[] = {name, nullptr};
  char* environment[] = {nullptr};
  gate_call(SYS_chdir, "/");
  ordinary_call(SYS_setsid);
  ordinary_call(SYS_dup2, socket, 0);
  gate_call(SYS_execve, library, &arguments[0], &environment[0]);
  for (;;) ordinary_call(SYS_exit_group, 1);
}

// Our end of a socket on which the guard says that it is ready; -1: it cannot be started. It is
// outside the new filter, which therefore ends with the last process of the command.
int start_guard_process() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&start_own_guard), &self) == 0 || self.dli_fname[0] != '/') {
    return -1;
  }
  int ends[2];
  if (ordinary_call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &ends[0]) != 0) {
    return -1;
  }
  // Without an exit signal: not even a handler or a wait of the program's sees this child.
  const long child = ordinary_call(SYS_clone, 0L, 0L, 0L, 0L);
  if (child == 0) {
    if (ordinary_call(SYS_clone, 0L, 0L, 0L, 0L) == 0) become_guard(self.dli_fname, ends[1]);
    for (;;) ordinary_call(SYS_exit_group, 0);
  }
  ordinary_call(SYS_close, ends[1]);
  long waited = 0;
  do {
    waited = child > 0 ? ordinary_call(SYS_wait4, child, 0L, __WALL, 0L) : child;
  } while (waited == -EINTR);
  pollfd ready{ends[0], POLLIN, 0};
  char byte = 0;
  if (child > 0 && ordinary_call(SYS_poll, &ready, 1, kReadyWithin_ms) == 1 &&
      ordinary_call(SYS_read, ends[0], &byte, sizeof byte) == 1) {
    return ends[0];
  }
  ordinary_call(SYS_close, ends[0]);
  return -1;
}

bool guard_this_process() {
  sock_filter program[kOwnInstructions + 2 * wire::kMostStoppedNumbers];
  const wire::StoppedNumbers& stopped = shim.header->stopped;
  if (stopped.all == 0 || stopped.all > wire::kMostStoppedNumbers || stopped.native > stopped.all) {
    return false;
  }
  const int guard = start_guard_process();
  if (guard < 0) return false;
  const sock_fprog filter{write_filter(stopped, &program[0]), &program[0]};
  const long listener = install_filter(filter);
  const bool sent = !failed(listener) && send_listener(guard, static_cast<int>(listener));
  if (!failed(listener)) ordinary_call(SYS_close, listener);
  ordinary_call(SYS_close, guard);
  return sent;
}

}  // namespace

bool start_own_guard() {
  if (!is_deserted()) return true;
  if (!on()) return false;
  shim.header->deserted.store(1, std::memory_order_relaxed);
  // No handler of the program's runs in between, nor in the children.
  constexpr long kSetSize = 8;
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  ordinary_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, kSetSize);
  guard_this_process();
  ordinary_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0L, kSetSize);
  // Also true if another thread was first: the kernel refused our filter then.
  return !is_deserted();
}

void start_own_guard_if_deserted() {
  if (on() && shim.header->deserted.load(std::memory_order_relaxed) != 0) start_own_guard();
}

}  // namespace assay::shim
