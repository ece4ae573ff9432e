// The few kernel structures the programs read, with the few fields they read, and how they are
// read. The loader finds
// where each field is in the running kernel from its type information (CO-RE), so these are names,
// not layouts; a field that moved between kernel versions has a variant with a suffix (___v).
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "observe/collect/ebpf/bpf/message.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
  union {
    struct {
      __u32 hash;
      __u32 len;
    };
    __u64 hash_len;
  };
  const unsigned char* name;
};

struct dentry {
  struct dentry* d_parent;
  struct qstr d_name;
};

struct super_block {
  __u32 s_dev;
  unsigned long s_flags;
  unsigned long s_magic;
};

struct inode {
  unsigned short i_mode;
  struct super_block* i_sb;
  unsigned long i_ino;
  long long i_size;
  __u32 i_generation;
  // Since 6.11.
  long long i_mtime_sec;
  long long i_ctime_sec;
  __u32 i_mtime_nsec;
  __u32 i_ctime_nsec;
};

struct timespec64 {
  long long tv_sec;
  long tv_nsec;
};
struct inode___6_7 {
  struct timespec64 __i_mtime;
};
struct inode___6_6 {
  struct timespec64 __i_ctime;
};
struct inode___old {
  struct timespec64 i_mtime;
  struct timespec64 i_ctime;
};

struct vfsmount {
  struct dentry* mnt_root;
};

struct mnt_namespace;
struct mount {
  struct mount* mnt_parent;
  struct dentry* mnt_mountpoint;
  struct vfsmount mnt;
  struct mnt_namespace* mnt_ns;
};

struct path {
  struct vfsmount* mnt;
  struct dentry* dentry;
};

struct file {
  unsigned int f_mode;
  unsigned int f_flags;
  struct inode* f_inode;
  struct path f_path;
};

struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};
struct files_struct {
  struct fdtable* fdt;
};

struct fs_struct {
  struct path root;
  struct path pwd;
};

struct nsproxy {
  struct mnt_namespace* mnt_ns;
};

struct upid {
  int nr;
};
struct pid {
  unsigned int level;
  struct upid numbers[1];
};

struct mm_struct {
  unsigned long arg_start;
  unsigned long arg_end;
};

struct atomic_counter {
  int counter;
};
struct signal_struct {
  struct atomic_counter live;
  unsigned int flags;
  int group_exit_code;
};

struct thread_info {
  __u32 status;
};

struct task_struct {
  struct thread_info thread_info;
  unsigned int flags;
  int pid;
  int tgid;
  int exit_code;
  struct task_struct* group_leader;
  struct pid* thread_pid;
  struct files_struct* files;
  struct fs_struct* fs;
  struct nsproxy* nsproxy;
  struct mm_struct* mm;
  struct signal_struct* signal;
};

struct linux_binprm {
  struct file* file;
  const char* filename;
  const char* interp;
};

struct pt_regs {
  unsigned long orig_ax;
  unsigned long di, si;  // the first two arguments of a system call,
  unsigned long bx, cx;  // and in the i386 interface
};

// io_uring
struct io_cqe {
  __s32 res;
};
struct io_kiocb {
  __u8 opcode;
  struct io_cqe cqe;
};
struct open_how {
  __u64 flags;
};
struct io_open {
  __u32 file_slot;
  struct open_how how;
};

#pragma clang attribute pop

// Numbers of the kernel's interface to user space, or unchanged since the oldest kernel we run on.
enum {
  kFmodeRead = 0x1,
  kFmodeWrite = 0x2,
  kFmodeExec = 0x20,  // in f_flags; user space cannot set it
  kFmodePath = 0x4000,
  kFmodeCreated = 0x100000,
  kFmodeNoAccount = 0x20000000,  // opened by a file system for its own use (overlayfs)
  kOpenTruncate = 01000,
  kOpenDirectory = 0200000,
  kOpenTemporary = 020000000,  // __O_TMPFILE
  kTypeMask = 0170000,
  kTypeRegular = 0100000,
  kTypeDirectory = 0040000,
  kSuperInternal = 1 << 22,  // SB_KERNMOUNT: memfd and shared memory, which have no path
  kIoWorker = 0x10,          // PF_IO_WORKER
  kGroupExit = 0x4,          // SIGNAL_GROUP_EXIT
  kCompatCall = 0x2,         // TS_COMPAT: the i386 interface
  kCurrentDirectory = -100,  // AT_FDCWD
  kNotFound = 2,             // ENOENT
  kCtimeQueried = 1u << 31,  // I_CTIME_QUERIED, in i_ctime_nsec
};

const volatile struct assay_constants constants SEC(".rodata.constants") = {};

extern void* bpf_rdonly_cast(const void* object, __u32 type) __ksym __weak;

// FIELD(type, pointer, field): reads a field of a kernel structure at an untyped address. Since
// Linux 6.2 the verifier can be told the type (bpf_rdonly_cast), and the read is one instruction;
// before, it is a helper call of about ten nanoseconds.
//
// The address is taken first: a field read inside the arguments would be relocated, too.
#define FIELD(type, pointer, field)                                                          \
  ({                                                                                         \
    const void* from_ = (const void*)(pointer);                                              \
    constants.can_cast                                                                       \
        ? ((const struct type*)bpf_rdonly_cast(from_, bpf_core_type_id_kernel(struct type))) \
              ->field                                                                        \
        : BPF_CORE_READ((const struct type*)from_, field);                                   \
  })
