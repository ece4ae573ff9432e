// The programs that see, inside the kernel, what a command opens and which processes it has. The
// collector (programs.cc) loads them in one of two ways:
//
//   vfs      on_file_open, where the kernel's functions can be attached to: every open, by any call
//   syscall  on_sys_exit and on_uring_complete, where it does not: opens as system calls end
//
// and always on_sys_exit, which also sees look-ups, and the programs for the life of
// processes. Those for io_uring are loaded when a command first sets up a ring.
#include <linux/bpf.h>
// first: its types are used by these
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "observe/collect/ebpf/bpf/lookup.h"
#include "observe/collect/ebpf/bpf/open.h"
#include "observe/collect/ebpf/bpf/process.h"
#include "observe/collect/ebpf/bpf/run.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline unsigned int call_kind(unsigned long number, unsigned long compat) {
  return number < kAssayCallNumbers ? constants.calls[compat & 1][number & (kAssayCallNumbers - 1)]
                                    : 0;
}

// 1 if the process makes the call through the i386 interface, else 0. Without a branch, as all that
// depends on it: the verifier would look at the rest of the program once for each.
static __always_inline unsigned long is_compat(const struct task_struct* task) {
  unsigned long status = FIELD(task_struct, task, thread_info.status);
  barrier_var(status);
  return (status & kCompatCall) / kCompatCall;
}

// Of a typed pointer, which every kernel can read at once. x32 numbers are the others with a bit.
static __always_inline unsigned long number_of_call(struct pt_regs* regs) {
  return (constants.can_cast ? FIELD(pt_regs, regs, orig_ax) : regs->orig_ax) & ~0x40000000ul;
}

static __always_inline unsigned long selected(unsigned long yes, unsigned long no,
                                              unsigned long condition) {
  unsigned long mask = -condition;
  barrier_var(mask);
  return (yes & mask) | (no & ~mask);
}

static __always_inline unsigned long first_argument(const struct pt_regs* regs,
                                                    unsigned long compat) {
  return selected((__u32)FIELD(pt_regs, regs, bx), FIELD(pt_regs, regs, di), compat);
}

// The name that was given to the call, in the process's memory.
static __always_inline const char* given_name(const struct pt_regs* regs, unsigned int call,
                                              unsigned long compat) {
  const unsigned long second =
      selected((__u32)FIELD(pt_regs, regs, cx), FIELD(pt_regs, regs, si), compat);
  const unsigned long at_second = (call & kAssayPathSecond) / kAssayPathSecond;
  return (const char*)selected(second, first_argument(regs, compat), at_second);
}

// Runs at the end of every system call of every process: the cheapest checks come first.
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs* regs, long result) {
  if (result < 0 && result != -kNotFound) return 0;
  const unsigned long number = number_of_call(regs);
  if (!(call_kind(number, 0) | call_kind(number, 1))) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  const struct member* member = member_of(task);
  if (!member) return 0;
  const unsigned long compat = is_compat(task);
  const unsigned int call = call_kind(number, compat);
  if (call & kAssayUring) {
    count(&shared.uring_calls);
    return 0;
  }
  const char* given = given_name(regs, call, compat);
  if (result < 0 || !(call & kAssayOpens)) {
    if (!(call & kAssayQueries)) return 0;
    const unsigned long failed = (unsigned long)result >> 63;
    const unsigned long kind = selected(kAssayAbsent, kAssayQueried, failed);
    return report_lookup(task, member, call, kind, first_argument(regs, compat), given);
  }
  if (constants.opens_are_seen_inside) return 0;
  const struct file* file = file_at(task, result);
  if (!file) {  // closed by another thread already
    count(&shared.dropped_path);
    return 0;
  }
  return opened(task, member, file, 0, !(call & kAssayByHandle), given);
}

SEC("fentry/security_file_open")
int BPF_PROG(on_file_open, struct file* file) {
  struct task_struct* task = bpf_get_current_task_btf();
  const struct member* member = leader_member_of(task);
  if (!member) return 0;
  const char* given = 0;
  if (!(BPF_CORE_READ(task, flags) & kIoWorker)) {
    const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(task);
    const unsigned long number = BPF_CORE_READ(regs, orig_ax) & ~0x40000000ul;
    const unsigned long compat = is_compat(task);
    const unsigned int call = call_kind(number, compat);
    if (call & kAssayOpens && !(call & kAssayByHandle)) given = given_name(regs, call, compat);
  }
  return opened(task, member, file, 0, given != 0, given);
}

// io_uring. Operations by number (user space's interface).
enum {
  kUringOpenat = 18,
  kUringOpenat2 = 28,
  kUringRenameat = 35,
  kUringUnlinkat = 36,
  kUringLinkat = 39,
  kUringFtruncate = 55
};

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_uring_submit, struct io_kiocb* request) {
  const __u8 operation = BPF_CORE_READ(request, opcode);
  switch (operation) {
    case kUringOpenat:
    case kUringOpenat2:
    case kUringRenameat:
    case kUringUnlinkat:
    case kUringLinkat:
    case kUringFtruncate:
      break;
    default:
      return 0;
  }
  if (!leader_member_of(bpf_get_current_task_btf())) return 0;
  const bool opening = operation == kUringOpenat || operation == kUringOpenat2;
  count(opening ? &shared.uring_opens_begun : &shared.uring_changes);
  return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_uring_complete, void* ring, void* raw_request) {
  const struct io_kiocb* request = raw_request;
  const __u8 operation = BPF_CORE_READ(request, opcode);
  if (operation != kUringOpenat && operation != kUringOpenat2) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  const struct member* member = leader_member_of(task);
  if (!member) return 0;
  count(&shared.uring_opens_ended);
  const int result = BPF_CORE_READ(request, cqe.res);
  if (result < 0) return 0;
  const struct io_open* open = (const struct io_open*)request;
  if (BPF_CORE_READ(open, file_slot) != 0) {
    count(&shared.uring_unfollowed);
    return 0;
  }
  const struct file* file = file_at(task, result);
  if (!file) {
    count(&shared.dropped_path);
    return 0;
  }
  return opened(task, member, file, BPF_CORE_READ(open, how.flags), false, 0);
}
