// /proc/TID/status of a stopped thread, and its rights to a file. Read only where necessary,
// because the kernel is slow to produce that text. Used by stopped_call.cc.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace assay::collect {

struct RemoteStatus {
  bool valid = false;
  pid_t process = 0;        // thread group, in the collector's pid namespace
  pid_t inner_process = 0;  // in the thread's own pid namespace
  pid_t inner_thread = 0;
  pid_t parent = 0;
  uid_t user = 0;   // effective
  gid_t group = 0;  // effective
  bool no_new_privileges = false;
  int filters = 0;           // its seccomp filters (Linux 5.9; 0: unknown)
  bool administers = false;  // CAP_SYS_ADMIN, in its own user namespace
};

RemoteStatus read_remote_status(pid_t thread);

// Whether the thread's effective user and group are root: the owner of its /proc entry, which is
// cheap to read. (The entry of a non-dumpable process belongs to root as well; the caller then
// checks more than necessary.)
bool runs_as_root(pid_t thread);

// Whether the thread is known to be in another mount namespace than the collector.
bool in_other_mounts(pid_t thread);

}  // namespace assay::collect
