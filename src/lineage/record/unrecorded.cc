#include "lineage/record/unrecorded.h"

#include <sys/wait.h>

#include <cerrno>
#include <optional>

#include "base/process/exit_status.h"

namespace assay::lineage {

int exit_code_of(const base::Error& not_started) {
  return not_started.code == base::ExitCode::kUsage ? base::kExitNotFound : base::kExitNotRunnable;
}

base::Result<void> run_unobserved(const collect::Launch& launch, collect::KeeperChannel& channel,
                                  const std::function<void()>& started) {
  ASSAY_TRY(const collect::Launched child, collect::launch(launch, [] { return true; }));
  if (auto failure = collect::exec_failure(launch, child.exec_result.get())) {
    ::waitpid(child.pid, nullptr, 0);
    return base::fail(*std::move(failure));
  }
  started();
  channel.started(child.pid, -1);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  channel.ended(status);
  return {};
}

}  // namespace assay::lineage
