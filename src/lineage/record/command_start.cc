#include "lineage/record/command_start.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "base/process/exit_status.h"
#include "base/unique_fd.h"
#include "lineage/track/hash_task.h"
#include "lineage/track/stamp.h"

namespace assay::lineage {
namespace {

void refresh_stamp(collect::Inherited& file) {
  const std::int64_t now_ns = file_clock_ns();  // before fstat
  struct stat status {};
  if (::fstat(file.descriptor, &status) != 0) return;
  file.stamp = to_wire(stamp_of(status));
  // What is appended shows in the size, whatever the clock says.
  file.racy = !file.appends && racily_new(to_hash(file.stamp), now_ns);
}

}  // namespace

void refresh_stamps(std::vector<collect::Inherited>& files) {
  constexpr int kAttempts = 4;
  constexpr std::chrono::milliseconds kPause{10};
  for (collect::Inherited& file : files) {
    if (!file.writable) continue;
    refresh_stamp(file);
    // Standard streams are meant to be written to: in doubt they were, so this does not wait.
    if (collect::is_standard_stream(file.descriptor)) continue;
    for (int attempt = 1; file.racy && attempt < kAttempts; ++attempt) {
      std::this_thread::sleep_for(kPause);
      refresh_stamp(file);
    }
  }
}

void release_descriptors(std::vector<int>& descriptors) {
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null.valid()) ::dup2(null.get(), standard);
  }
  for (const int descriptor : descriptors) ::close(descriptor);
  descriptors.clear();
}

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
