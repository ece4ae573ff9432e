// fopen: the shim's open and the C library's fdopen, or the C library's own where there is nothing
// to record. C++ file streams come through here as well.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/opening.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

// A usual mode: r, w or a, then + b e x in any order and number.
struct Mode {
  int flags = -1;      // of open; -1: an unusual mode, left to the C library
  char plain[3] = {};  // what fdopen needs of it
};

Mode understood(const char* text) {
  Mode mode;
  int access = O_WRONLY;
  int more = 0;
  switch (text[0]) {
    case 'r':
      access = O_RDONLY;
      break;
    case 'w':
      more = O_CREAT | O_TRUNC;
      break;
    case 'a':
      more = O_CREAT | O_APPEND;
      break;
    default:
      return mode;
  }
  mode.plain[0] = text[0];
  for (int i = 1; text[i] != 0; ++i) {
    if (i == 6) return mode;  // the C library reads no further
    switch (text[i]) {
      case '+':
        access = O_RDWR;
        mode.plain[1] = '+';
        break;
      case 'b':
        break;
      case 'e':
        more |= O_CLOEXEC;
        break;
      case 'x':
        more |= O_EXCL;
        break;
      default:
        return mode;
    }
  }
  mode.flags = access | more;
  return mode;
}

FILE* fopen_by(Function function, const char* path, const char* mode_text) {
  using Fopen = FILE*(const char*, const char*);
  Fopen* another = other<Fopen>(function);
  const Mode mode = another == nullptr && on() ? understood(mode_text) : Mode{};
  if (mode.flags == -1) {
    auto* next = another != nullptr ? another : reinterpret_cast<Fopen*>(next_of(function));
    return next(path, mode_text);  // its open is seen by the gate
  }
  pthread_testcancel();
  const long file = open_file(AT_FDCWD, path, mode.flags, 0666);
  if (failed(file)) {
    errno = static_cast<int>(-file);
    return nullptr;
  }
  const int descriptor = static_cast<int>(file);
  // For append-only modes fopen seeks to the end at once, fdopen only at the first write.
  const bool usable = mode.plain[0] != 'a' || mode.plain[1] == '+' ||
                      lseek(descriptor, 0, SEEK_END) >= 0 || errno == ESPIPE;
  FILE* stream = usable ? fdopen(descriptor, mode.plain) : nullptr;
  if (stream == nullptr) ordinary_call(SYS_close, file);
  return stream;
}

}  // namespace
}  // namespace assay::shim

extern "C" {

ASSAY_EXPORTED FILE* fopen(const char* path, const char* mode) {
  return assay::shim::fopen_by(assay::shim::Function::kFopen, path, mode);
}
ASSAY_EXPORTED FILE* fopen64(const char* path, const char* mode) {
  return assay::shim::fopen_by(assay::shim::Function::kFopen64, path, mode);
}

}  // extern "C"
