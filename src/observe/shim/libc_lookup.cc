// Calls that look up names without opening a file: stat and similar calls, access, opendir. They
// are made as the C library makes them. A missing file, and a folder that is listed, are recorded
// once: if in a later run the file exists, or the folder has other names, the program may behave
// differently.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/opening.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

// Passes on another library's result, and records a missing file.
int note_if_absent(int result, int directory, const char* path) {
  if (result == 0 || errno != ENOENT || !on()) return result;
  note_absent(directory, path);
  errno = ENOENT;
  return result;
}

int like_libc(long result, int directory, const char* path) {
  if (!failed(result)) return static_cast<int>(result);
  if (result == -ENOENT && on()) note_absent(directory, path);
  errno = static_cast<int>(-result);
  return -1;
}

template <typename Status>
using Stat = int(const char*, Status*);
template <typename Status>
using StatAt = int(int, const char*, Status*, int);
using Access = int(const char*, int);
using OpenDir = DIR*(const char*);

// struct stat and struct stat64 are the same on x86-64.
template <typename Status>
int stat_by(Function function, const char* path, Status* status, int flags) {
  if (auto* next = other<Stat<Status>>(function))
    return note_if_absent(next(path, status), AT_FDCWD, path);
  return like_libc(ordinary_call(SYS_newfstatat, AT_FDCWD, path, status, flags), AT_FDCWD, path);
}

template <typename Status>
int stat_at_by(Function function, int directory, const char* path, Status* status, int flags) {
  if (auto* next = other<StatAt<Status>>(function)) {
    return note_if_absent(next(directory, path, status, flags), directory, path);
  }
  return like_libc(ordinary_call(SYS_newfstatat, directory, path, status, flags), directory, path);
}

}  // namespace
}  // namespace assay::shim

using assay::shim::Function;

extern "C" {

ASSAY_EXPORTED int stat(const char* path, struct stat* status) noexcept {
  return assay::shim::stat_by(Function::kStat, path, status, 0);
}
ASSAY_EXPORTED int stat64(const char* path, struct stat64* status) noexcept {
  return assay::shim::stat_by(Function::kStat64, path, status, 0);
}
ASSAY_EXPORTED int lstat(const char* path, struct stat* status) noexcept {
  return assay::shim::stat_by(Function::kLstat, path, status, AT_SYMLINK_NOFOLLOW);
}
ASSAY_EXPORTED int lstat64(const char* path, struct stat64* status) noexcept {
  return assay::shim::stat_by(Function::kLstat64, path, status, AT_SYMLINK_NOFOLLOW);
}
ASSAY_EXPORTED int fstatat(int at, const char* path, struct stat* status, int flags) noexcept {
  return assay::shim::stat_at_by(Function::kFstatat, at, path, status, flags);
}
ASSAY_EXPORTED int fstatat64(int at, const char* path, struct stat64* status, int flags) noexcept {
  return assay::shim::stat_at_by(Function::kFstatat64, at, path, status, flags);
}
ASSAY_EXPORTED int access(const char* path, int mode) noexcept {
  using namespace assay::shim;
  if (auto* next = other<Access>(Function::kAccess))
    return note_if_absent(next(path, mode), AT_FDCWD, path);
  return like_libc(ordinary_call(SYS_access, path, mode), AT_FDCWD, path);
}

ASSAY_EXPORTED DIR* opendir(const char* path) {
  using namespace assay::shim;
  if (!on() || other<OpenDir>(Function::kOpendir) != nullptr) {
    return reinterpret_cast<OpenDir*>(next_of(Function::kOpendir))(path);
  }
  const long folder = open_file(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC, 0);
  if (failed(folder)) {
    errno = static_cast<int>(-folder);
    return nullptr;
  }
  DIR* const stream = fdopendir(static_cast<int>(folder));
  if (stream == nullptr) {
    const int why = errno;
    gate_call(SYS_close, folder);
    errno = why;
  }
  return stream;
}

}  // extern "C"
