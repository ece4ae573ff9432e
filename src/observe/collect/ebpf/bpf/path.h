// The path of an open file, from its directory entry up to the collector's root directory, across
// mounts. Names are written in the order of the walk, file first; the collector reverses them.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "observe/collect/ebpf/bpf/kernel.h"
#include "observe/collect/ebpf/bpf/message.h"

// A walk in progress. It is in a map, not on the stack, because the verifier does not track values
// there as pointers, so that addresses can be compared and computed with. Volatile, so that the
// compiler does not keep a copy in a register.
struct walk {
  volatile __u64 dentry;
  volatile __u64 mount;       // struct mount
  volatile __u64 mount_root;  // its topmost entry
  __u64 root_dentry;
  __u64 root_mount;
  __u32 length;
  __s32 state;  // 0: under way, 1: at the root, -1: unknown
};

// bpf_loop (kernel 5.17) verifies one move, however many are made; without it the verifier walks
// every move, and files deeper than this (mounts count too) are counted as missed.
enum { kMostMoves = kAssayPathMax, kMostPlainMoves = 64 };
enum bpf_func_id___here { BPF_FUNC_loop___here = 181 };

// The fields of a directory entry that one move needs. Where reads are helper calls, one is cheaper
// than three: d_parent and d_name are adjacent in every kernel so far, which is checked when the
// program is loaded.
struct entry {
  __u64 parent;
  __u32 hash;
  __u32 length;
  __u64 name;
};

static __always_inline bool read_entry(struct entry* entry, __u64 dentry) {
  if (constants.can_cast) {
    entry->parent = (__u64)FIELD(dentry, dentry, d_parent);
    entry->length = FIELD(dentry, dentry, d_name.len);
    entry->name = (__u64)FIELD(dentry, dentry, d_name.name);
    return true;
  }
  const struct dentry* from = (const struct dentry*)dentry;
  if (bpf_core_field_offset(struct dentry, d_name) ==
      bpf_core_field_offset(struct dentry, d_parent) + 8) {
    return bpf_core_read(entry, sizeof *entry, &from->d_parent) == 0;
  }
  entry->length = BPF_CORE_READ(from, d_name.len);
  entry->name = (__u64)BPF_CORE_READ(from, d_name.name);
  return bpf_core_read(&entry->parent, 8, &from->d_parent) == 0;
}

static __always_inline void move_up(struct walk* walk, char* text) {
  if (walk->dentry == walk->root_dentry && walk->mount == walk->root_mount) {
    walk->state = 1;
    return;
  }
  struct entry entry;
  if (!read_entry(&entry, walk->dentry)) goto failed;
  if (walk->dentry == walk->mount_root || walk->dentry == entry.parent) {
    const __u64 above = (__u64)FIELD(mount, walk->mount, mnt_parent);
    if (above == walk->mount) {  // the namespace's own root: the collector's is not above this file
      walk->state = 1;
      return;
    }
    walk->dentry = (__u64)FIELD(mount, walk->mount, mnt_mountpoint);
    walk->mount = above;
    walk->mount_root = (__u64)FIELD(mount, above, mnt.mnt_root);
    return;
  }
  const __u32 at = walk->length;
  if (entry.length == 0 || entry.length >= kAssayNameMax) goto failed;
  if (at + entry.length + 1 >= kAssayPathMax) goto failed;
  char* to = text + (at & (kAssayPathMax - 1));
  if (bpf_probe_read_kernel(to, entry.length & (kAssayNameMax - 1), (const void*)entry.name)) {
    goto failed;
  }
  text[(at + entry.length) & (kAssayPathMax - 1)] = '/';
  walk->length = at + entry.length + 1;
  walk->dentry = entry.parent;
  return;
failed:
  walk->state = -1;
}

struct walker {
  struct walk* walk;
  char* text;
};

static long move_up_again(__u32 index, struct walker* walker) {
  move_up(walker->walk, walker->text);
  return walker->walk->state != 0;
}

// Where a walk begins. After this walk->mount and walk->dentry are the numbers of the two.
static __always_inline void begin_walk(struct walk* walk, const struct assay_shared* shared,
                                       const struct vfsmount* mount, const struct dentry* dentry) {
  walk->mount = (__u64)mount;
  walk->mount -= bpf_core_field_offset(struct mount, mnt);
  walk->mount_root = (__u64)FIELD(vfsmount, mount, mnt_root);
  walk->dentry = (__u64)dentry;
  walk->root_dentry = shared->root_dentry;
  walk->root_mount = shared->root_mount;
  walk->length = 0;
  walk->state = 0;
}

// Writes the path into `text` (of kAssayPathMax + kAssayNameMax bytes) and returns its length, with
// one '/' after each name; -1 if it is longer than kAssayPathMax.
static __noinline long write_path(struct walk* walk, char* text) {
  if (!walk || !text) return -1;
  struct walker walker = {walk, text};
  if (bpf_core_enum_value_exists(enum bpf_func_id___here, BPF_FUNC_loop___here)) {
    bpf_loop(kMostMoves, move_up_again, &walker, 0);
  } else {
    for (int i = 0; i < kMostPlainMoves && walk->state == 0; ++i) move_up(walk, text);
  }
  return walk->state == 1 ? (long)walk->length : -1;
}
