// The C library's functions that open or change files by calls of their own, and that the shim does
// not replace otherwise: they go through the gate, and are repeated behind a guard where nobody
// answers there any more (own_guard.h).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/own_guard.h"
#include "observe/shim/shim.h"

namespace assay::shim {
namespace {

template <typename... Arguments>
int call_by(Function function, Arguments... arguments) {
  return behind_guard([=] { return next_once<int(Arguments...)>(function)(arguments...); },
                      [](int result) { return result == -1 && errno == ENOSYS; });
}

// A failure has changed the pattern, or closed the stream: these are not repeated, the gate is
// tried before.
template <typename Result, typename... Arguments>
Result once_by(Function function, Arguments... arguments) {
  if (on()) start_own_guard();
  return next_once<Result(Arguments...)>(function)(arguments...);
}

}  // namespace
}  // namespace assay::shim

using assay::shim::call_by;
using assay::shim::Function;
using assay::shim::once_by;

extern "C" {

ASSAY_EXPORTED int remove(const char* path) noexcept {
  return call_by(Function::kRemove, path);
}
ASSAY_EXPORTED int mkfifo(const char* path, mode_t mode) noexcept {
  return call_by(Function::kMkfifo, path, mode);
}
ASSAY_EXPORTED int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  return call_by(Function::kMknod, path, mode, device);
}
ASSAY_EXPORTED int utime(const char* path, const struct utimbuf* times) noexcept {
  return call_by(Function::kUtime, path, times);
}
ASSAY_EXPORTED int utimes(const char* path, const struct timeval times[2]) noexcept {
  return call_by(Function::kUtimes, path, times);
}
ASSAY_EXPORTED int utimensat(int directory, const char* path, const struct timespec times[2],
                             int flags) noexcept {
  return call_by(Function::kUtimensat, directory, path, times, flags);
}

ASSAY_EXPORTED FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return once_by<FILE*>(Function::kFreopen, path, mode, stream);
}
ASSAY_EXPORTED FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return once_by<FILE*>(Function::kFreopen64, path, mode, stream);
}
ASSAY_EXPORTED FILE* tmpfile() {
  return once_by<FILE*>(Function::kTmpfile);
}
ASSAY_EXPORTED FILE* tmpfile64() {
  return once_by<FILE*>(Function::kTmpfile64);
}
ASSAY_EXPORTED int mkstemp(char* pattern) {
  return once_by<int>(Function::kMkstemp, pattern);
}
ASSAY_EXPORTED int mkstemp64(char* pattern) {
  return once_by<int>(Function::kMkstemp64, pattern);
}
ASSAY_EXPORTED int mkostemp(char* pattern, int flags) {
  return once_by<int>(Function::kMkostemp, pattern, flags);
}
ASSAY_EXPORTED int mkostemp64(char* pattern, int flags) {
  return once_by<int>(Function::kMkostemp64, pattern, flags);
}

}  // extern "C"
