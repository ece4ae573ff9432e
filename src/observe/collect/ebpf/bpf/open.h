// Sends a message for a successful open, once per process, name, kind of access and state of the
// file.
#pragma once

#include "observe/collect/ebpf/bpf/path.h"
#include "observe/collect/ebpf/bpf/run.h"
#include "observe/collect/ebpf/bpf/stamp.h"

static __always_inline enum assay_access access_of(unsigned int mode, unsigned int flags) {
  if (flags & kOpenTemporary) return kAssayCreateUnnamed;
  if (mode & kFmodeCreated) return kAssayCreate;
  if (flags & kOpenTruncate) return kAssayTruncate;
  if (!(mode & kFmodeWrite)) return kAssayRead;
  return mode & kFmodeRead ? kAssayReadWrite : kAssayWrite;
}

// `flags` may have flags that the file does not keep (O_TRUNC is dropped after the open); `gated`
// says whether the call went through the gate; `given` is the name in the process's memory, or 0.
static __always_inline int opened(struct task_struct* task, const struct member* member,
                                  const struct file* file, unsigned int flags, bool gated,
                                  const char* given) {
  const unsigned int mode = FIELD(file, file, f_mode);
  flags |= FIELD(file, file, f_flags);
  // A program being executed is reported by on_exec; files that a stacked file system (overlayfs)
  // opens underneath are not opened by the command.
  if (mode & (kFmodePath | kFmodeNoAccount) || flags & kFmodeExec) return 0;
  const struct inode* inode = FIELD(file, file, f_inode);
  const unsigned int type = FIELD(inode, inode, i_mode) & kTypeMask;
  if (type != kTypeRegular && type != kTypeDirectory) return 0;
  const struct super_block* super = FIELD(inode, inode, i_sb);
  if (FIELD(super_block, super, s_flags) & kSuperInternal) return 0;

  const __u32 zero = 0;
  struct open_scratch* scratch = bpf_map_lookup_elem(&open_scratches, &zero);
  if (!scratch) return 0;
  struct assay_message* message = &scratch->message;
  // Stored to memory and read back, so that the verifier does not track the constant: else it would
  // check the rest of the program once for each value.
  *(volatile __u8*)&message->access = type == kTypeDirectory ? kAssayList : access_of(mode, flags);
  const __u8 access = *(volatile __u8*)&message->access;
  const bool change =
      access == kAssayReadWrite || access == kAssayWrite || access == kAssayTruncate;
  if ((change || access == kAssayCreateUnnamed) && gated && shared.gate_stops_changes) return 0;
  // Without a branch: the verifier would check the rest of the program once for each.
  const unsigned int plain = (~flags & kOpenDirectory) / kOpenDirectory * kAssayPlainOpen;
  *(volatile __u8*)&message->hints = (change && !gated ? kAssayUnseenChange : 0) | plain;
  take_stamp(message, inode, super);

  // Reported already? The same inode by another name (hard link, rename, bind mount) is reported
  // again, and so is a changed state. A new file under a reused inode number differs in
  // i_generation, and in ctime where a file system does not count generations.
  const struct vfsmount* mount = FIELD(file, file, f_path.mnt);
  const struct dentry* dentry = FIELD(file, file, f_path.dentry);
  struct walk* walk = &scratch->walk;
  begin_walk(walk, &shared, mount, dentry);
  __u64 hash = mixed(shared.seed ^ shared.epoch, member->id | (__u64)access << 32);
  hash = mixed(hash, message->device << 32 | FIELD(inode, inode, i_generation));
  hash = mixed(hash, message->inode);
  if (access != kAssayList) {
    hash = mixed(hash, message->size);
    hash = mixed(hash, message->mtime_ns);
    hash = mixed(hash, message->ctime_ns);
  }
  hash = mixed(hash, walk->mount);
  hash = mixed(hash, FIELD(dentry, dentry, d_name.hash_len));
  __u64* slot = &seen[hash & (kAssaySeenSlots - 1)];
  if (*slot == hash) {
    if (access != kAssayList) return 0;
    // Listings are reported twice, as by the shim: Python lists the folders that it imports from.
    hash = mixed(hash, kAssayList);
    slot = &seen[hash & (kAssaySeenSlots - 1)];
    if (*slot == hash) return 0;
  }

  const __u64 namespace = (__u64)FIELD(mount, walk->mount, mnt_ns);
  const __u64 length = write_path(walk, scratch->text);
  if (length > kAssayPathMax) {
    count(&shared.dropped_path);
    return 0;
  }
  if (namespace != shared.mnt_namespace) {
    message->hints |= kAssayOtherNamespace;
  }
  address(message, task);
  message->kind = kAssayOpen;
  message->path_length = length;
  // Only the name as given shows symbolic links on the way.
  const long more =
      given ? bpf_probe_read_user_str(scratch->text + length, kAssayPathMax, given) : 0;
  const __u64 other = more > 1 ? more - 1 : 0;
  message->other_length = other;
  message->parent = 0;
  message->value = 0;
  if (send(message, length + other, 2 * kAssayPathMax, false)) *slot = hash;
  return 0;
}

// The file at a descriptor of this process, or nothing.
static __always_inline struct file* file_at(struct task_struct* task, long descriptor) {
  struct file* file = 0;
  const struct files_struct* files = FIELD(task_struct, task, files);
  const struct fdtable* table = FIELD(files_struct, files, fdt);
  if (descriptor < 0 || descriptor >= FIELD(fdtable, table, max_fds)) return 0;
  if (bpf_probe_read_kernel(&file, sizeof file, FIELD(fdtable, table, fd) + descriptor)) return 0;
  return file;
}
