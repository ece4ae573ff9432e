// What the program calls instead of the C library's open and its relatives.
//
// open is a cancellation point. A thread that was cancelled before it gets here ends here; one that
// is cancelled while the kernel opens (a pipe, a file server) ends at its next cancellation point,
// as a thread does in which the cancellation came a moment later.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>

#include "observe/shim/exported.h"
#include "observe/shim/opening.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

int open_like_libc(int directory, const char* path, int flags, mode_t mode) {
  pthread_testcancel();
  const long result = open_file(directory, path, flags, mode);
  if (!failed(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// Ends the program with the C library's own message.
int without_mode(const char* function, int directory, const char* path, int flags) {
  void* real = dlsym(RTLD_NEXT, function);
  if (directory == AT_FDCWD) return reinterpret_cast<int (*)(const char*, int)>(real)(path, flags);
  return reinterpret_cast<int (*)(int, const char*, int)>(real)(directory, path, flags);
}

}  // namespace
}  // namespace assay::shim

using assay::shim::open_like_libc;
using assay::shim::takes_mode;
using assay::shim::without_mode;

extern "C" {

// The mode is there only with flags that need it; reading it otherwise would be reading garbage.
#define ASSAY_MODE_AFTER(flags)       \
  mode_t mode = 0;                    \
  if (takes_mode(flags)) {            \
    va_list arguments;                \
    va_start(arguments, flags);       \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }

ASSAY_EXPORTED int open(const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return open_like_libc(AT_FDCWD, path, flags, mode);
}
ASSAY_EXPORTED int open64(const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return open_like_libc(AT_FDCWD, path, flags, mode);
}
ASSAY_EXPORTED int openat(int directory, const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return open_like_libc(directory, path, flags, mode);
}
ASSAY_EXPORTED int openat64(int directory, const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return open_like_libc(directory, path, flags, mode);
}
ASSAY_EXPORTED int creat(const char* path, mode_t mode) {
  return open_like_libc(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
ASSAY_EXPORTED int creat64(const char* path, mode_t mode) {
  return open_like_libc(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

// What open becomes in programs compiled with _FORTIFY_SOURCE, when the flags are not constant.
ASSAY_EXPORTED int __open_2(const char* path, int flags) {
  if (takes_mode(flags)) return without_mode("__open_2", AT_FDCWD, path, flags);
  return open_like_libc(AT_FDCWD, path, flags, 0);
}
ASSAY_EXPORTED int __open64_2(const char* path, int flags) {
  if (takes_mode(flags)) return without_mode("__open64_2", AT_FDCWD, path, flags);
  return open_like_libc(AT_FDCWD, path, flags, 0);
}
ASSAY_EXPORTED int __openat_2(int directory, const char* path, int flags) {
  if (takes_mode(flags)) return without_mode("__openat_2", directory, path, flags);
  return open_like_libc(directory, path, flags, 0);
}
ASSAY_EXPORTED int __openat64_2(int directory, const char* path, int flags) {
  if (takes_mode(flags)) return without_mode("__openat64_2", directory, path, flags);
  return open_like_libc(directory, path, flags, 0);
}

}  // extern "C"
