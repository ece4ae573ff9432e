// The guard of own_guard.h: what runs when this library is executed as a program. The kernel maps
// it and jumps here; no loader has run, so nothing is relocated and there is no C library. Only
// system calls, and only of numbers that the gate does not stop.
//
// Descriptor 0 is a socket: the guard says that it is ready, receives the listener, and lets all
// calls continue until no process is left under the filter. All signals are blocked, as the process
// that started it had them.
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

constexpr int kListenerWithin_ms = 10'000;
// Larger than the kernel's structures are, and cleared, as it requires.
constexpr int kWords = 64;

int receive_listener() {
  char byte = 0;
  iovec content{&byte, sizeof byte};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message;
  message.msg_name = nullptr;
  message.msg_namelen = 0;
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = &control[0];
  message.msg_controllen = sizeof control;
  message.msg_flags = 0;
  pollfd waiting{0, POLLIN, 0};
  if (ordinary_call(SYS_poll, &waiting, 1, kListenerWithin_ms) != 1 ||
      ordinary_call(SYS_recvmsg, 0, &message, 0) != 1 ||
      message.msg_controllen < CMSG_LEN(sizeof(int))) {
    return -1;
  }
  int listener = -1;
  __builtin_memcpy(&listener, CMSG_DATA(reinterpret_cast<cmsghdr*>(&control[0])), sizeof listener);
  return listener;
}

void let_continue(int listener) {
  for (;;) {
    pollfd waiting{listener, POLLIN, 0};
    if (ordinary_call(SYS_poll, &waiting, 1, -1) < 0) continue;
    if ((waiting.revents & POLLIN) == 0) return;
    // Volatile: the compiler must not call memset.
    volatile std::uint64_t request[kWords];
    volatile std::uint64_t response[kWords];
    for (volatile std::uint64_t& one : request) one = 0;
    for (volatile std::uint64_t& one : response) one = 0;
    auto* call = const_cast<std::uint64_t*>(&request[0]);
    auto* answer = const_cast<std::uint64_t*>(&response[0]);
    if (ordinary_call(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, call) != 0) continue;
    reinterpret_cast<seccomp_notif_resp*>(answer)->id =
        reinterpret_cast<const seccomp_notif*>(call)->id;
    reinterpret_cast<seccomp_notif_resp*>(answer)->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ordinary_call(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, answer);
  }
}

}  // namespace

extern "C" [[noreturn, gnu::used, gnu::visibility("hidden")]] void assay_guard_main() {
  const char byte = 0;
  ordinary_call(SYS_prctl, PR_SET_NAME, "assay-guard");
  // Pipes must end when the command closes them.
  if (ordinary_call(SYS_close_range, 1, ~0U, 0) != 0) {
    for (int file = 1; file < 4096; ++file) ordinary_call(SYS_close, file);  // before Linux 5.9
  }
  if (ordinary_call(SYS_write, 0, &byte, sizeof byte) == 1) {
    const int listener = receive_listener();
    if (listener >= 0) let_continue(listener);
  }
  for (;;) ordinary_call(SYS_exit_group, 0);
}

}  // namespace assay::shim

// The library's entry point (see CMakeLists.txt).
asm(R"(
  .text
  .hidden assay_guard_start
  .globl assay_guard_start
  .type assay_guard_start, @function
assay_guard_start:
  xor %ebp, %ebp
  and $-16, %rsp
  call assay_guard_main
  .size assay_guard_start, . - assay_guard_start
)");
