// The programs that see, inside the kernel, what a command opens and which processes it has. The
// collector (programs.cc) loads them in one of two ways:
//
//   vfs      on_file_open, where the kernel's functions can be attached to: every open, by any call
//   syscall  on_sys_exit and on_uring_complete, where it does not: opens as system calls end
//
// and always the programs for the life of processes.
#include <linux/bpf.h>
// first: its types are used by these
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "observe/collect/ebpf/bpf/run.h"
#include "observe/collect/ebpf/bpf/open.h"
#include "observe/collect/ebpf/bpf/process.h"

char LICENSE[] SEC("license") = "GPL";

// Calls by number. The gate stops those that open by path; a file handle has none it could read.
enum { kNotOpening, kOpening, kOpeningByHandle, kUringSetup };

static __always_inline int opening64(unsigned long number) {
  switch (number) {
    case 2:    // open
    case 85:   // creat
    case 257:  // openat
    case 437:  // openat2
      return kOpening;
    case 304:  // open_by_handle_at
      return kOpeningByHandle;
    case 425:
      return kUringSetup;
  }
  return kNotOpening;
}

static __always_inline int opening32(unsigned long number) {
  switch (number) {
    case 5:    // open
    case 8:    // creat
    case 295:  // openat
    case 437:  // openat2
      return kOpening;
    case 342:  // open_by_handle_at
      return kOpeningByHandle;
    case 425:
      return kUringSetup;
  }
  return kNotOpening;
}

// Runs at the end of every system call of every process: the cheapest checks come first.
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs* regs, long result) {
  if (result < 0) return 0;
  const unsigned long number = regs->orig_ax & ~0x40000000ul;  // x32 numbers are these with a bit
  const int opening64bit = opening64(number);
  const int opening32bit = opening32(number);
  if (opening64bit == kNotOpening && opening32bit == kNotOpening) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  const int opening =
      FIELD(task_struct, task, thread_info.status) & kCompatCall ? opening32bit : opening64bit;
  if (opening == kNotOpening) return 0;
  const struct member* member = member_of(task);
  if (!member) return 0;
  if (opening == kUringSetup) {
    count(&shared.uring_rings);
    return 0;
  }
  const struct file* file = file_at(task, result);
  if (!file) {  // closed by another thread already
    count(&shared.dropped_path);
    return 0;
  }
  return opened(task, member, file, 0, opening == kOpening);
}

SEC("fentry/security_file_open")
int BPF_PROG(on_file_open, struct file* file) {
  struct task_struct* task = bpf_get_current_task_btf();
  const struct member* member = member_of(task);
  if (!member) return 0;
  bool gated = !(BPF_CORE_READ(task, flags) & kIoWorker);
  if (gated) {
    const struct pt_regs* regs = (const struct pt_regs*)bpf_task_pt_regs(task);
    const unsigned long number = BPF_CORE_READ(regs, orig_ax) & ~0x40000000ul;
    const bool compat = FIELD(task_struct, task, thread_info.status) & kCompatCall;
    gated = (compat ? opening32(number) : opening64(number)) == kOpening;
  }
  return opened(task, member, file, 0, gated);
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
  if (!member_of(bpf_get_current_task_btf())) return 0;
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
  const struct member* member = member_of(task);
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
  return opened(task, member, file, BPF_CORE_READ(open, how.flags), false);
}
