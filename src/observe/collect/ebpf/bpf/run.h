// Which processes belong to the command, what was reported already, and sending messages: shared by
// all programs of files.bpf.c.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "observe/collect/ebpf/bpf/kernel.h"
#include "observe/collect/ebpf/bpf/message.h"
#include "observe/collect/ebpf/bpf/path.h"

// In its own section, and so in its own map, because the collector maps it.
struct assay_shared shared SEC(".bss.shared");
// One word per slot, so that concurrent writes by several processors cannot mix.
__u64 seen[kAssaySeenSlots];

// Membership is in task storage: created at fork and freed with the thread, so it can neither
// overflow nor be mistaken for that of a reused pid.
struct member {
  __u32 id;     // of the process in this run, never reused
  __u32 ended;  // of the thread group's leader: its exit was reported
};
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct member);
} members SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, kAssayRingSize);
} messages SEC(".maps");

// Space for the message being built, one for opens and one for process events: the program of an
// open may be interrupted on its processor by one for process events, but not by another open.
struct open_scratch {
  struct walk walk;
  struct assay_message message;
  char text[2 * kAssayPathMax + kAssayNameMax];
};
struct process_scratch {
  struct walk walk;
  struct assay_message message;
  char text[kAssayPathMax + kAssayNameMax + kAssayArgumentsMax];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct open_scratch);
} open_scratches SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct process_scratch);
} process_scratches SEC(".maps");

static __always_inline void count(__u64* counter) {
  __sync_fetch_and_add(counter, 1);
}

// Every thread has the storage of its process, so that no pointer has to be followed here: the
// verifier takes a millisecond for each typed pointer that it must understand.
static __always_inline struct member* member_of(struct task_struct* task) {
  return bpf_task_storage_get(&members, task, 0, 0);
}

// For programs that may run in io_uring's own threads, whose creation is not reported.
static __always_inline struct member* leader_member_of(struct task_struct* task) {
  return bpf_task_storage_get(&members, task->group_leader, 0, 0);
}

// The pid as the collector's namespace knows it.
static __always_inline int pid_of(const struct task_struct* task) {
  const __u32 level = shared.pid_level;
  if (level == 0) return FIELD(task_struct, task, pid);
  struct upid number;
  const struct pid* pid = BPF_CORE_READ(task, thread_pid);
  const unsigned long at = bpf_core_field_offset(struct pid, numbers) +
                           (unsigned long)level * bpf_core_type_size(struct upid);
  if (bpf_probe_read_kernel(&number.nr, sizeof number.nr, (const char*)pid + at)) return 0;
  return number.nr;
}

static __always_inline void address(struct assay_message* message, const struct task_struct* task) {
  const struct task_struct* leader = FIELD(task_struct, task, group_leader);
  message->time_ns = bpf_ktime_get_ns();
  message->thread = pid_of(task);
  message->process = leader == task ? message->thread : pid_of(leader);
}

// `size` bytes of text follow the message. Waking the collector costs more than the message, and it
// polls every few milliseconds: it is woken when much is waiting, or at once if requested.
static __always_inline bool send(struct assay_message* message, __u64 size, __u64 most, bool wake) {
  barrier_var(size);  // older verifiers must see the bound on the same register that is used
  if (size > most) size = most;
  barrier_var(size);
  wake = wake || bpf_ringbuf_query(&messages, BPF_RB_AVAIL_DATA) > kAssayWakeAt;
  const __u64 flags = wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
  if (bpf_ringbuf_output(&messages, message, sizeof *message + size, flags) == 0) return true;
  count(&shared.dropped_full);
  return false;
}

static __always_inline __u64 mixed(__u64 hash, __u64 word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}
