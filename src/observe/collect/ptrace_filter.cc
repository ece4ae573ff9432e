#include "observe/collect/ptrace_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "observe/collect/call_table.h"
#include "observe/collect/path_call.h"

namespace assay::collect {
namespace {

using Filter = std::vector<sock_filter>;

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kStopPath =
    SECCOMP_RET_TRACE | static_cast<std::uint32_t>(TraceReason::kPath);
constexpr std::uint32_t kStopClone =
    SECCOMP_RET_TRACE | static_cast<std::uint32_t>(TraceReason::kClone);

// clone's numbers; its flags are its first argument. clone3 has them in memory.
struct CloneNumbers {
  std::uint32_t clone;
  std::uint32_t clone3;
};
constexpr CloneNumbers kClone64{56, 435};
constexpr CloneNumbers kClone32{120, 435};

void load(Filter& filter, std::size_t offset) {
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}
void load_argument(Filter& filter, int index) {
  // The lower half comes first; flags are no longer than that.
  load(filter, offsetof(seccomp_data, args) + static_cast<std::size_t>(index) * 8);
}
void jump(Filter& filter, unsigned test, std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  filter.push_back(BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, yes, no));
}
void answer(Filter& filter, std::uint32_t action) {
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, action));
}

// An open that reads or writes a file: not O_PATH, not a directory. O_TMPFILE has the bit of
// O_DIRECTORY and one more.
void add_open(Filter& filter, const Stopped& call) {
  constexpr std::uint32_t kUnnamed = O_TMPFILE & ~O_DIRECTORY;
  jump(filter, BPF_JEQ, static_cast<std::uint32_t>(call.number), 0, 6);
  load_argument(filter, call.flags_argument);
  jump(filter, BPF_JSET, O_PATH, 2, 0);
  filter.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_DIRECTORY | kUnnamed));
  jump(filter, BPF_JEQ, O_DIRECTORY, 0, 1);
  answer(filter, kAllow);
  answer(filter, kStopPath);
}

// The number is loaded, and no other word is on the way to the end of the list.
void add_calls(Filter& filter, std::uint32_t arch, bool x32, CloneNumbers clone) {
  for (const Stopped& call : stopped_calls(arch)) {
    if (((call.number & kX32Bit) != 0) != x32) continue;
    if (call.flags_argument >= 0) {
      add_open(filter, call);
    } else {
      jump(filter, BPF_JEQ, static_cast<std::uint32_t>(call.number), 0, 1);
      answer(filter, kStopPath);
    }
  }
  const std::uint32_t bit = x32 ? std::uint32_t{kX32Bit} : 0;
  jump(filter, BPF_JEQ, clone.clone3 | bit, 0, 1);
  answer(filter, kStopClone);
  jump(filter, BPF_JEQ, clone.clone | bit, 0, 3);
  load_argument(filter, 0);
  jump(filter, BPF_JSET, CLONE_UNTRACED, 0, 1);
  answer(filter, kStopClone);
  answer(filter, kAllow);
}

// Goes on behind `rest` unless the loaded word passes the test.
void add_branch(Filter& filter, unsigned test, std::uint32_t value, const Filter& rest) {
  jump(filter, test, value, 1, 0);
  filter.push_back(BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(rest.size())));
  filter.insert(filter.end(), rest.begin(), rest.end());
}

Filter calls_of(std::uint32_t arch, bool x32, CloneNumbers clone) {
  Filter calls;
  add_calls(calls, arch, x32, clone);
  return calls;
}

}  // namespace

std::vector<sock_filter> trace_filter() {
  Filter native;
  load(native, offsetof(seccomp_data, nr));
  add_branch(native, BPF_JGE, std::uint32_t{kX32Bit}, calls_of(AUDIT_ARCH_X86_64, true, kClone64));
  add_calls(native, AUDIT_ARCH_X86_64, false, kClone64);

  Filter narrow;
  load(narrow, offsetof(seccomp_data, nr));
  add_calls(narrow, AUDIT_ARCH_I386, false, kClone32);

  Filter filter;
  load(filter, offsetof(seccomp_data, arch));
  add_branch(filter, BPF_JEQ, AUDIT_ARCH_X86_64, native);
  add_branch(filter, BPF_JEQ, AUDIT_ARCH_I386, narrow);
  answer(filter, kAllow);
  return filter;
}

bool install_trace_filter(const std::vector<sock_filter>& filter) {
  sock_fprog program{static_cast<unsigned short>(filter.size()),
                     const_cast<sock_filter*>(filter.data())};
  // The filter is not there to protect secrets from the program: no mitigations, which cost.
  const auto install = [&](unsigned flags) {
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
  };
  if (install(SECCOMP_FILTER_FLAG_SPEC_ALLOW)) return true;
  // Without privileges a process may filter itself only if nothing it starts gains any.
  if (errno == EACCES && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return install(SECCOMP_FILTER_FLAG_SPEC_ALLOW) || (errno == EINVAL && install(0));
}

}  // namespace assay::collect
