// What /proc/TID/status says of a stopped thread, and what the thread may do to a file. Used by
// path_call.cc; read only where it matters, because the kernel takes its time to write that text.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace assay::collect {

struct RemoteStatus {
  bool valid = false;
  pid_t process = 0;        // thread group, as we number processes
  pid_t inner_process = 0;  // as the thread itself does, in its own pid namespace
  pid_t inner_thread = 0;
  pid_t parent = 0;
  uid_t user = 0;   // effective
  gid_t group = 0;  // effective
  bool no_new_privileges = false;
  int filters = 0;           // seccomp filters upon it (Linux 5.9; 0: not known)
  bool administers = false;  // CAP_SYS_ADMIN, in its own user namespace
};

RemoteStatus read_remote_status(pid_t thread);

// Whether the thread's effective user and group are root: the owner of its /proc entry, which is
// cheap to ask. (A process that hides itself is shown as root's; then nobody was asked in vain.)
bool runs_as_root(pid_t thread);

// Whether the thread is known to be in another mount namespace than we are.
bool in_other_mounts(pid_t thread);

}  // namespace assay::collect
