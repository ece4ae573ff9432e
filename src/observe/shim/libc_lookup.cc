// Calls that look up names without opening a file: stat and similar calls, access, readlink,
// realpath. What they found is recorded once: that a file is missing, or that it exists (and that
// the program was told its size). If this is different in a later run, the program may behave
// differently.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/opening.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

// What the caller was told about an existing file, beside that it exists.
enum class Told { kNothing, kSize };

// Records the answer to a query. `error` is ENOENT if there is no such file.
void note(bool found, int error, int directory, const char* path, Told told) {
  if (!on()) return;
  if (found) note_queried(directory, path, told == Told::kSize);
  if (!found && error == ENOENT) note_absent(directory, path);
}

template <typename Result>
bool succeeded(Result result) {
  if constexpr (__is_same(Result, char*)) {
    return result != nullptr;
  } else {
    return result >= 0;
  }
}

// Passes on what the next definition of the function returns, and errno with it.
template <typename Result>
Result noted(Result result, int directory, const char* path, Told told) {
  const int error = errno;
  note(succeeded(result), error, directory, path, told);
  errno = error;
  return result;
}

template <typename Result>
Result like_libc(long result, int directory, const char* path, Told told) {
  note(!failed(result), static_cast<int>(-result), directory, path, told);
  if (!failed(result)) return static_cast<Result>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// The next definition, looked up at the first call: for functions that are more than one system
// call. (Not for others: looking it up takes the loader's lock, which another thread may have held
// when this process was forked.)
template <typename Result, typename... Arguments>
Result by_next(Function function, int directory, const char* path, Arguments... arguments) {
  auto* const next = next_once<Result(Arguments...)>(function);
  return noted(next(arguments...), directory, path, Told::kNothing);
}

// struct stat and struct stat64 are the same on x86-64.
template <typename Status>
int stat_by(Function function, const char* path, Status* status, int flags) {
  if (auto* next = other<int(const char*, Status*)>(function))
    return noted(next(path, status), AT_FDCWD, path, Told::kSize);
  return like_libc<int>(ordinary_call(SYS_newfstatat, AT_FDCWD, path, status, flags), AT_FDCWD,
                        path, Told::kSize);
}

template <typename Status>
int stat_at_by(Function function, int directory, const char* path, Status* status, int flags) {
  if (auto* next = other<int(int, const char*, Status*, int)>(function)) {
    return noted(next(directory, path, status, flags), directory, path, Told::kSize);
  }
  return like_libc<int>(ordinary_call(SYS_newfstatat, directory, path, status, flags), directory,
                        path, Told::kSize);
}

// The `version` is that of struct stat: there is one on x86-64.
template <typename Status>
int versioned_stat(Function function, int version, const char* path, Status* status, int flags) {
  if (auto* next = other<int(int, const char*, Status*)>(function))
    return noted(next(version, path, status), AT_FDCWD, path, Told::kSize);
  return like_libc<int>(ordinary_call(SYS_newfstatat, AT_FDCWD, path, status, flags), AT_FDCWD,
                        path, Told::kSize);
}
template <typename Status>
int versioned_stat_at(Function function, int version, int directory, const char* path,
                      Status* status, int flags) {
  if (auto* next = other<int(int, int, const char*, Status*, int)>(function)) {
    return noted(next(version, directory, path, status, flags), directory, path, Told::kSize);
  }
  return like_libc<int>(ordinary_call(SYS_newfstatat, directory, path, status, flags), directory,
                        path, Told::kSize);
}

using Access = int(const char*, int);
using AccessAt = int(int, const char*, int, int);
using Statx = int(int, const char*, int, unsigned, struct statx*);
using Readlink = ssize_t(const char*, char*, std::size_t);
using ReadlinkAt = ssize_t(int, const char*, char*, std::size_t);

}  // namespace
}  // namespace assay::shim

using assay::shim::by_next;
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
ASSAY_EXPORTED int statx(int at, const char* path, int flags, unsigned mask,
                         struct statx* status) noexcept {
  using namespace assay::shim;
  if (auto* next = other<Statx>(Function::kStatx))
    return noted(next(at, path, flags, mask, status), at, path, Told::kSize);
  return like_libc<int>(ordinary_call(SYS_statx, at, path, flags, mask, word(status)), at, path,
                        Told::kSize);
}

// What stat was called before glibc 2.33, in programs that were built then.
ASSAY_EXPORTED int __xstat(int version, const char* path, struct stat* status) noexcept {
  return assay::shim::versioned_stat(Function::kXstat, version, path, status, 0);
}
ASSAY_EXPORTED int __xstat64(int version, const char* path, struct stat64* status) noexcept {
  return assay::shim::versioned_stat(Function::kXstat64, version, path, status, 0);
}
ASSAY_EXPORTED int __lxstat(int version, const char* path, struct stat* status) noexcept {
  return assay::shim::versioned_stat(Function::kLxstat, version, path, status, AT_SYMLINK_NOFOLLOW);
}
ASSAY_EXPORTED int __lxstat64(int version, const char* path, struct stat64* status) noexcept {
  return assay::shim::versioned_stat(Function::kLxstat64, version, path, status,
                                     AT_SYMLINK_NOFOLLOW);
}
ASSAY_EXPORTED int __fxstatat(int version, int at, const char* path, struct stat* status,
                              int flags) noexcept {
  return assay::shim::versioned_stat_at(Function::kFxstatat, version, at, path, status, flags);
}
ASSAY_EXPORTED int __fxstatat64(int version, int at, const char* path, struct stat64* status,
                                int flags) noexcept {
  return assay::shim::versioned_stat_at(Function::kFxstatat64, version, at, path, status, flags);
}

ASSAY_EXPORTED int access(const char* path, int mode) noexcept {
  using namespace assay::shim;
  if (auto* next = other<Access>(Function::kAccess))
    return noted(next(path, mode), AT_FDCWD, path, Told::kNothing);
  return like_libc<int>(ordinary_call(SYS_access, path, mode), AT_FDCWD, path, Told::kNothing);
}
// With flags the C library may check by itself, with several calls.
ASSAY_EXPORTED int faccessat(int at, const char* path, int mode, int flags) noexcept {
  using namespace assay::shim;
  if (flags != 0 || other<AccessAt>(Function::kFaccessat) != nullptr)
    return by_next<int>(Function::kFaccessat, at, path, at, path, mode, flags);
  return like_libc<int>(ordinary_call(SYS_faccessat, at, path, mode), at, path, Told::kNothing);
}
ASSAY_EXPORTED int euidaccess(const char* path, int mode) noexcept {
  return by_next<int>(Function::kEuidaccess, AT_FDCWD, path, path, mode);
}
ASSAY_EXPORTED int eaccess(const char* path, int mode) noexcept {
  return by_next<int>(Function::kEaccess, AT_FDCWD, path, path, mode);
}

ASSAY_EXPORTED ssize_t readlink(const char* path, char* text, std::size_t size) noexcept {
  using namespace assay::shim;
  if (auto* next = other<Readlink>(Function::kReadlink))
    return noted(next(path, text, size), AT_FDCWD, path, Told::kNothing);
  return like_libc<ssize_t>(ordinary_call(SYS_readlink, path, text, size), AT_FDCWD, path,
                            Told::kNothing);
}
ASSAY_EXPORTED ssize_t readlinkat(int at, const char* path, char* text, std::size_t size) noexcept {
  using namespace assay::shim;
  if (auto* next = other<ReadlinkAt>(Function::kReadlinkat))
    return noted(next(at, path, text, size), at, path, Told::kNothing);
  return like_libc<ssize_t>(ordinary_call(SYS_readlinkat, at, path, text, size), at, path,
                            Told::kNothing);
}
// The checked variants end the program if `text` has less space than `size`.
ASSAY_EXPORTED ssize_t __readlink_chk(const char* path, char* text, std::size_t size,
                                      std::size_t space) noexcept {
  if (size <= space) return readlink(path, text, size);
  return by_next<ssize_t>(Function::kReadlinkChk, AT_FDCWD, path, path, text, size, space);
}
ASSAY_EXPORTED ssize_t __readlinkat_chk(int at, const char* path, char* text, std::size_t size,
                                        std::size_t space) noexcept {
  if (size <= space) return readlinkat(at, path, text, size);
  return by_next<ssize_t>(Function::kReadlinkatChk, at, path, at, path, text, size, space);
}
// The C library reads the links on the way by system calls of its own.
ASSAY_EXPORTED char* realpath(const char* path, char* resolved) noexcept {
  return by_next<char*>(Function::kRealpath, AT_FDCWD, path, path, resolved);
}
ASSAY_EXPORTED char* __realpath_chk(const char* path, char* resolved, std::size_t space) noexcept {
  return by_next<char*>(Function::kRealpathChk, AT_FDCWD, path, path, resolved, space);
}
ASSAY_EXPORTED char* canonicalize_file_name(const char* path) noexcept {
  return by_next<char*>(Function::kCanonicalizeFileName, AT_FDCWD, path, path);
}

}  // extern "C"
