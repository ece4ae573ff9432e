// What the BPF programs (files.bpf.c) send through the ring buffer and share by memory with the
// collector (programs.cc). Compiled by both sides, as C and as C++.
#pragma once

#include <linux/types.h>
#include <stdbool.h>

enum {
  // Text of a path: names from the file up to the root, with '/' between them.
  kAssayPathMax = 4096,
  // Longest name a file system can have (FUSE allows 1024); a power of two for the verifier.
  kAssayNameMax = 1024,
  // Arguments of a program; longer ones are read by the collector while the process exists.
  kAssayArgumentsMax = 16384,
  // Slots of the table of opens that were reported already, 8 bytes each; a power of two.
  kAssaySeenSlots = 1 << 16,
  // Bytes of messages between the programs and the collector, and how many must be waiting before
  // it is woken.
  kAssayRingSize = 16 << 20,
  kAssayWakeAt = 1 << 20,
};

// What a message is.
enum assay_message_kind {
  kAssayOpen = 1,  // other is the name that the process gave, if it is known
  kAssayFork,      // process is the child, parent its parent
  kAssayScript,    // the next exec of this process runs a script: path is the working directory,
                   // other the name given to execve
  kAssayExec,      // path is the program that runs, other its arguments, NUL after each
  kAssayExit,      // value is the wait status
  kAssayAbsent,    // other does not exist; if it is relative, path is the directory
  kAssayQueried,   // the same of a name that exists; access is kAssayTellsSize or 0
};

enum assay_access {
  kAssayRead = 1,
  kAssayReadWrite,
  kAssayWrite,
  kAssayTruncate,
  kAssayCreate,
  kAssayCreateUnnamed,
  kAssayList,  // a directory, probably to list its names
};

enum assay_hint {
  kAssayOtherNamespace = 1,  // the file's mount is not of the collector's mount namespace
  kAssayNeedsStat = 2,       // on this file system, stat returns other numbers than the inode has
  kAssayArgumentsTruncated = 4,
  kAssayPlainOpen = 16,    // opened without O_DIRECTORY
  kAssayUnseenChange = 8,  // existing content opened for writing where the gate could not stop it
};

struct assay_message {
  __u64 time_ns;
  __u64 device;  // as stat's st_dev
  __u64 inode;
  __s64 size;
  __s64 mtime_ns;
  __s64 ctime_ns;
  __s32 thread;
  __s32 process;
  __s32 parent;
  __s32 value;
  __u8 kind;    // assay_message_kind
  __u8 access;  // assay_access, of opens
  __u8 hints;   // assay_hint
  __u8 unused;
  __u16 path_length;
  __u16 other_length;
  // path and other follow
};

// What on_sys_exit needs to know about a system call.
enum assay_call {
  kAssayOpens = 1,          // its result is a descriptor
  kAssayQueries = 2,        // a kAssayQueried message is sent; kAssayAbsent if it fails with ENOENT
  kAssayPathSecond = 4,     // the path is the second argument, after a directory descriptor
  kAssayByHandle = 8,       // opens without a path, past the gate
  kAssayUring = 16,         // io_uring_setup, io_uring_enter
  kAssayTellsSize = 32,     // of a query: the result has the file's size
  kAssayCallNumbers = 512,  // a power of two above all of them
};

// Set before the programs are loaded: the verifier drops branches that are never taken.
struct assay_constants {
  bool can_cast;                     // bpf_rdonly_cast exists (FIELD in kernel.h)
  bool opens_are_seen_inside;        // by on_file_open
  __u8 calls[2][kAssayCallNumbers];  // assay_call by number: x86-64's interface, i386's
};

// Mapped by the collector. Counters only grow, except `live`.
struct assay_shared {
  // Written by the collector:
  __u64 epoch;          // incremented when names may refer to other files: report all again
  __u64 seed;           // of the table of reported opens, so that collisions cannot be provoked
  __u64 root_dentry;    // where the collector's paths begin: "/" of its root directory,
  __u64 root_mount;     // taken by the program `learn`
  __u64 mnt_namespace;  // of the collector
  __u32 pid_level;      // depth of the collector's pid namespace, in which pids are reported
  __u32 gate_stops_changes;  // the gate reports opens that change existing files
  __u64 project_word;  // the first eight bytes of the project's folder, as a little-endian word,
  __u64 project_mask;  // and which of them it has; 0: no project
  // Written by the programs:
  __s64 live;  // processes of the command that have not ended
  __u64 members;
  __u64 dropped_full;       // the ring buffer was full
  __u64 dropped_path;       // no path: longer than kAssayPathMax, or removed
  __u64 dropped_member;     // a child that could not be followed
  __u64 uring_calls;        // io_uring_setup and io_uring_enter
  __u64 uring_opens_begun;  // opens submitted to io_uring,
  __u64 uring_opens_ended;  // and those with a known result
  __u64 uring_changes;      // renames, removals and the like by io_uring: not reported
  __u64 uring_unfollowed;   // opened into io_uring's own table of files: not reported
};
