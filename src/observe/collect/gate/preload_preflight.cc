// What `assay tracers` says of preload: whether the gate can really be installed here, by doing it.
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/process/exit_status.h"
#include "observe/collect/gate/gate.h"
#include "observe/collect/gate/preload.h"

namespace assay::collect {

namespace {

// errno of installing a filter that allows everything, or 0. In a child, because a filter cannot be
// taken off again.
int try_filter() {
  const std::vector<sock_filter> allow_all = {
      {static_cast<__u16>(BPF_RET | BPF_K), 0, 0, SECCOMP_RET_ALLOW}};
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(install_filter(allow_all, true) >= 0 ? 0 : errno);
  int status = 0;
  ::waitpid(child, &status, 0);
  return base::signal_of(status) ? EINTR : base::shell_exit_code(status);
}

}  // namespace

bool under_another_gate() {
  return try_filter() == EBUSY;
}

base::Result<void> gate_available() {
  const int error = try_filter();
  switch (error) {
    case 0:
      return {};
    case EBUSY:
      return base::fail(
          base::unfit_error("seccomp", "this shell already runs under a seccomp listener",
                            "inside another `assay run`, or in a sandbox that has one"));
    case EINVAL:
      return base::fail(base::unfit_error("seccomp", "the kernel has no user notification",
                                          "Linux 5.5 or newer has"));
    default:
      return base::fail(base::system_error("seccomp", "the filter was refused", error,
                                           "a container's seccomp profile may forbid it"));
  }
}

Preflight preload_preflight() {
  Preflight out{.tracer = Tracer::kPreload};
  const std::filesystem::path shim = shim_library();
  if (const auto gate = gate_available(); !gate) {
    out.reason = gate.error().line();
    return out;
  }
  out.available = true;
  out.reason = "seccomp user notification works";
  if (shim.empty()) {
    out.notes.emplace_back(
        "libassay-shim.so is not beside the program: complete, but every open stops (~5 µs)");
  } else {
    out.notes.push_back("shim: " + shim.string());
  }
  if (::geteuid() != 0) {
    out.notes.emplace_back(
        "sets no_new_privs: sudo and other set-user-id programs run without their powers");
  }
  out.notes.emplace_back("cannot see: files opened through io_uring (said in the verdict)");
  return out;
}

}  // namespace assay::collect
