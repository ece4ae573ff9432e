// Replacements for the C library's open and its variants.
//
// open is a cancellation point. A thread that was cancelled before it gets here ends here; one that
// is cancelled while the kernel opens (a pipe, a file server) ends at its next cancellation point,
// as a thread does in which the cancellation came a moment later.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/opening.h"
#include "observe/shim/shim.h"
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

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using Creat = int(const char*, mode_t);
// With flags that need a mode, these abort the program with the C library's own message.
using Open2 = int(const char*, int);
using OpenAt2 = int(int, const char*, int);

int open_by(Function function, const char* path, int flags, mode_t mode) {
  if (Open* next = other<Open>(function)) return next(path, flags, mode);
  return open_like_libc(AT_FDCWD, path, flags, mode);
}

int openat_by(Function function, int directory, const char* path, int flags, mode_t mode) {
  if (OpenAt* next = other<OpenAt>(function)) return next(directory, path, flags, mode);
  return open_like_libc(directory, path, flags, mode);
}

int creat_by(Function function, const char* path, mode_t mode) {
  if (!on() || other<Creat>(function) != nullptr) {
    return reinterpret_cast<Creat*>(next_of(function))(path, mode);
  }
  return open_like_libc(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int open2_by(Function function, const char* path, int flags) {
  if (takes_mode(flags) || other<Open2>(function) != nullptr) {
    return reinterpret_cast<Open2*>(next_of(function))(path, flags);
  }
  return open_like_libc(AT_FDCWD, path, flags, 0);
}

int openat2_by(Function function, int directory, const char* path, int flags) {
  if (takes_mode(flags) || other<OpenAt2>(function) != nullptr) {
    return reinterpret_cast<OpenAt2*>(next_of(function))(directory, path, flags);
  }
  return open_like_libc(directory, path, flags, 0);
}

}  // namespace
}  // namespace assay::shim

using assay::shim::creat_by;
using assay::shim::Function;
using assay::shim::open2_by;
using assay::shim::open_by;
using assay::shim::openat2_by;
using assay::shim::openat_by;
using assay::shim::takes_mode;

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
  return open_by(Function::kOpen, path, flags, mode);
}
ASSAY_EXPORTED int open64(const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return open_by(Function::kOpen64, path, flags, mode);
}
ASSAY_EXPORTED int openat(int directory, const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return openat_by(Function::kOpenat, directory, path, flags, mode);
}
ASSAY_EXPORTED int openat64(int directory, const char* path, int flags, ...) {
  ASSAY_MODE_AFTER(flags)
  return openat_by(Function::kOpenat64, directory, path, flags, mode);
}
ASSAY_EXPORTED int creat(const char* path, mode_t mode) {
  return creat_by(Function::kCreat, path, mode);
}
ASSAY_EXPORTED int creat64(const char* path, mode_t mode) {
  return creat_by(Function::kCreat64, path, mode);
}

// What open becomes in programs compiled with _FORTIFY_SOURCE, when the flags are not constant.
// NOLINTBEGIN(bugprone-reserved-identifier): the names are glibc's
ASSAY_EXPORTED int __open_2(const char* path, int flags) {
  return open2_by(Function::kOpen2, path, flags);
}
ASSAY_EXPORTED int __open64_2(const char* path, int flags) {
  return open2_by(Function::kOpen64_2, path, flags);
}
ASSAY_EXPORTED int __openat_2(int directory, const char* path, int flags) {
  return openat2_by(Function::kOpenat2, directory, path, flags);
}
ASSAY_EXPORTED int __openat64_2(int directory, const char* path, int flags) {
  return openat2_by(Function::kOpenat64_2, directory, path, flags);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
