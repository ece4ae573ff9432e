// futimens: what unpackers and copiers call for every file that they have just created. The gate
// stops calls that set a file's times, so that content which the run has read is hashed while its
// times still tell that it is unchanged. A file that this thread has created has no such content,
// so its times are set from the shim's instruction.
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "observe/shim/created_file.h"
#include "observe/shim/next_definition.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

using SetTimes = int(int, const struct timespec*);

long set_times(int file, const struct timespec* times) {
  if (file < 0) return -EBADF;
  if (on() && is_last_created(file)) return gate_call(SYS_utimensat, file, 0, times, 0);
  return stopped_call(SYS_utimensat, file, 0, word(times), 0);
}

}  // namespace
}  // namespace assay::shim

extern "C" {

ASSAY_EXPORTED int futimens(int file, const struct timespec times[2]) noexcept {
  using namespace assay::shim;
  if (auto* next = other<SetTimes>(Function::kFutimens)) return next(file, times);
  const long result = set_times(file, times);
  if (!failed(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"
