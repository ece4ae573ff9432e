#include "lineage/record/inherited.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

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
  file.racy = racily_new(to_hash(file.stamp), now_ns);
}

}  // namespace

void refresh_stamps(std::vector<collect::Inherited>& files) {
  constexpr int kAttempts = 4;
  constexpr std::chrono::milliseconds kPause{10};
  for (collect::Inherited& file : files) {
    if (!file.writable || collect::is_standard_stream(file.descriptor)) continue;
    refresh_stamp(file);
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

}  // namespace assay::lineage
