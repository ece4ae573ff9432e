// Forks, execs and exits of the command's processes; and `learn`, which the collector runs once to
// give the programs its own root directory and namespaces.
#pragma once

#include "observe/collect/ebpf/bpf/path.h"
#include "observe/collect/ebpf/bpf/run.h"
#include "observe/collect/ebpf/bpf/stamp.h"

// An empty message about the task, with space for its texts.
static __always_inline struct process_scratch* begin_message(struct task_struct* from) {
  const __u32 zero = 0;
  struct process_scratch* scratch = bpf_map_lookup_elem(&process_scratches, &zero);
  if (!scratch) return 0;
  __builtin_memset(&scratch->message, 0, sizeof scratch->message);
  address(&scratch->message, from);
  return scratch;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  const struct member* parents = member_of(parent);
  if (!parents) return 0;
  const __u32 id = parents->id;
  struct member* member = bpf_task_storage_get(&members, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!member) {
    count(&shared.dropped_member);
    return 0;
  }
  // Threads need storage too: a thread that calls exec becomes the leader of its group.
  if (BPF_CORE_READ(child, group_leader) != child) {
    member->id = id;
    return 0;
  }
  member->id = __sync_fetch_and_add(&shared.members, 1) + 1;
  __sync_fetch_and_add(&shared.live, 1);

  struct process_scratch* scratch = begin_message(child);
  if (!scratch) return 0;
  struct assay_message* message = &scratch->message;
  message->parent = pid_of(BPF_CORE_READ(parent, group_leader));
  message->kind = kAssayFork;
  send(message, 0, 0, false);
  return 0;
}

// A script: the kernel runs its interpreter instead and has already closed the script's own file,
// so only the name given to execve and the working directory are known.
static __always_inline void send_script(struct task_struct* task, struct linux_binprm* program,
                                        struct process_scratch* scratch) {
  struct assay_message* message = &scratch->message;
  begin_walk(&scratch->walk, &shared, BPF_CORE_READ(task, fs, pwd.mnt),
             BPF_CORE_READ(task, fs, pwd.dentry));
  __u64 at = write_path(&scratch->walk, scratch->text);
  if (at > kAssayPathMax) at = 0;
  const long length = bpf_probe_read_kernel_str(scratch->text + at, kAssayPathMax,
                                                BPF_CORE_READ(program, filename));
  if (length <= 1) {
    count(&shared.dropped_path);
    return;
  }
  message->kind = kAssayScript;
  message->path_length = at;
  message->other_length = length - 1;
  send(message, at + length - 1, 2 * kAssayPathMax, false);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task, int former_pid, struct linux_binprm* program) {
  if (!member_of(task)) return 0;
  struct process_scratch* scratch = begin_message(task);
  if (!scratch) return 0;
  struct assay_message* message = &scratch->message;
  if (BPF_CORE_READ(program, filename) != BPF_CORE_READ(program, interp))
    send_script(task, program, scratch);

  const struct file* file = BPF_CORE_READ(program, file);
  take_stamp(message, BPF_CORE_READ(file, f_inode), BPF_CORE_READ(file, f_inode, i_sb));
  begin_walk(&scratch->walk, &shared, BPF_CORE_READ(file, f_path.mnt),
             BPF_CORE_READ(file, f_path.dentry));
  const __u64 at = write_path(&scratch->walk, scratch->text);
  if (at > kAssayPathMax) {
    count(&shared.dropped_path);
    return 0;
  }
  const unsigned long from = BPF_CORE_READ(task, mm, arg_start);
  unsigned long arguments = BPF_CORE_READ(task, mm, arg_end) - from;
  if (arguments > kAssayArgumentsMax) {
    arguments = kAssayArgumentsMax;
    message->hints |= kAssayArgumentsTruncated;
  }
  if (bpf_probe_read_user(scratch->text + at, arguments, (const void*)from)) {
    arguments = 0;
    message->hints |= kAssayArgumentsTruncated;
  }
  message->kind = kAssayExec;
  message->path_length = at;
  message->other_length = arguments;
  send(message, at + arguments, kAssayPathMax + kAssayArgumentsMax, false);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  struct member* member = leader_member_of(task);
  if (!member) return 0;
  const struct signal_struct* signal = BPF_CORE_READ(task, signal);
  if (BPF_CORE_READ(signal, live.counter) != 0) return 0;
  // Two threads that exit last can both find the counter at zero.
  if (__sync_lock_test_and_set(&member->ended, 1) != 0) return 0;
  // Before the message: the collector, woken by it, must find the count without this process.
  __sync_fetch_and_add(&shared.live, -1);

  struct process_scratch* scratch = begin_message(task);
  if (!scratch) return 0;
  struct assay_message* message = &scratch->message;
  message->kind = kAssayExit;
  message->value = BPF_CORE_READ(signal, flags) & kGroupExit
                       ? BPF_CORE_READ(signal, group_exit_code)
                       : BPF_CORE_READ(task, group_leader, exit_code);
  send(message, 0, 0, true);
  return 0;
}

// Run once by the collector, as itself.
SEC("raw_tp")
int learn(void* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  shared.root_dentry = (__u64)BPF_CORE_READ(task, fs, root.dentry);
  shared.root_mount =
      (__u64)BPF_CORE_READ(task, fs, root.mnt) - bpf_core_field_offset(struct mount, mnt);
  shared.mnt_namespace = (__u64)BPF_CORE_READ(task, nsproxy, mnt_ns);
  shared.pid_level = BPF_CORE_READ(task, thread_pid, level);
  return 0;
}
