// A file's state (wire::Stamp) from its inode, as stat would return it.
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "observe/collect/ebpf/bpf/kernel.h"
#include "observe/collect/ebpf/bpf/message.h"

static __always_inline __s64 nanoseconds(__s64 seconds, __s64 rest) {
  return seconds * 1000000000 + rest;
}

static __always_inline __s64 mtime_of(const struct inode* inode) {
  if (bpf_core_field_exists(inode->i_mtime_sec)) {
    return nanoseconds(FIELD(inode, inode, i_mtime_sec), FIELD(inode, inode, i_mtime_nsec));
  }
  const struct inode___6_7* newer = (const struct inode___6_7*)inode;
  if (bpf_core_field_exists(newer->__i_mtime)) {
    return nanoseconds(BPF_CORE_READ(newer, __i_mtime.tv_sec),
                       BPF_CORE_READ(newer, __i_mtime.tv_nsec));
  }
  const struct inode___old* old = (const struct inode___old*)inode;
  return nanoseconds(BPF_CORE_READ(old, i_mtime.tv_sec), BPF_CORE_READ(old, i_mtime.tv_nsec));
}

static __always_inline __s64 ctime_of(const struct inode* inode) {
  if (bpf_core_field_exists(inode->i_ctime_sec)) {
    return nanoseconds(FIELD(inode, inode, i_ctime_sec),
                       FIELD(inode, inode, i_ctime_nsec) & ~kCtimeQueried);
  }
  const struct inode___6_6* newer = (const struct inode___6_6*)inode;
  if (bpf_core_field_exists(newer->__i_ctime)) {
    return nanoseconds(BPF_CORE_READ(newer, __i_ctime.tv_sec),
                       BPF_CORE_READ(newer, __i_ctime.tv_nsec) & ~kCtimeQueried);
  }
  const struct inode___old* old = (const struct inode___old*)inode;
  return nanoseconds(BPF_CORE_READ(old, i_ctime.tv_sec), BPF_CORE_READ(old, i_ctime.tv_nsec));
}

// The kernel keeps 12 bits of major and 20 of minor number; stat spreads them as in new_encode_dev.
static __always_inline __u64 device_as_stat(__u32 device) {
  const __u32 major = device >> 20;
  const __u32 minor = device & 0xfffff;
  return (minor & 0xff) | (major << 8) | ((minor & ~0xffu) << 12);
}

// File systems whose stat returns a device or inode number that the inode does not hold.
static __always_inline bool stat_differs(unsigned long magic) {
  return magic == 0x794c7630 /* overlayfs */ || magic == 0x9123683e /* btrfs */ ||
         magic == 0xca451a4e /* bcachefs */;
}

static __always_inline void take_stamp(struct assay_message* message, const struct inode* inode,
                                       const struct super_block* super) {
  message->device = device_as_stat(FIELD(super_block, super, s_dev));
  message->inode = FIELD(inode, inode, i_ino);
  message->size = FIELD(inode, inode, i_size);
  message->mtime_ns = mtime_of(inode);
  message->ctime_ns = ctime_of(inode);
  if (stat_differs(FIELD(super_block, super, s_magic))) message->hints |= kAssayNeedsStat;
}
