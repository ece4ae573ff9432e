// Calls that list a folder. Opening one is not enough: programs also open folders to come back to
// them (find) or to sync them (databases). Lists that the C library makes by itself (scandir, glob,
// nftw) and raw system calls are not seen here; the gate sees them open the folder.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/opening.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

using OpenDir = DIR*(const char*);
using OpenDescriptor = DIR*(int);
using GetEntries = ssize_t(int, void*, std::size_t);

DIR* open_stream(int folder) {
  return next_once<OpenDescriptor>(Function::kFdopendir)(folder);
}

void note_listed_descriptor(int folder) {
  if (on()) note_listed(folder, ".");
}

}  // namespace
}  // namespace assay::shim

using namespace assay::shim;  // NOLINT: the names of this file

extern "C" {

ASSAY_EXPORTED DIR* opendir(const char* path) {
  if (!on() || other<OpenDir>(Function::kOpendir) != nullptr) {
    return reinterpret_cast<OpenDir*>(next_of(Function::kOpendir))(path);
  }
  const long folder = open_file(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC, 0);
  if (failed(folder)) {
    errno = static_cast<int>(-folder);
    return nullptr;
  }
  note_listed(AT_FDCWD, path);
  DIR* const stream = open_stream(static_cast<int>(folder));
  if (stream == nullptr) {
    const int why = errno;
    gate_call(SYS_close, folder);
    errno = why;
  }
  return stream;
}

ASSAY_EXPORTED DIR* fdopendir(int folder) {
  DIR* const stream = open_stream(folder);
  if (stream == nullptr) return nullptr;
  const int error = errno;
  note_listed_descriptor(folder);
  errno = error;
  return stream;
}

ASSAY_EXPORTED ssize_t getdents64(int folder, void* entries, std::size_t size) noexcept {
  if (auto* next = other<GetEntries>(Function::kGetdents64)) return next(folder, entries, size);
  const long result = ordinary_call(SYS_getdents64, folder, entries, size);
  if (failed(result)) {
    errno = static_cast<int>(-result);
    return -1;
  }
  note_listed_descriptor(folder);
  return result;
}

}  // extern "C"
