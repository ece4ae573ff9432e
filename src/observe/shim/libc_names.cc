// Calls that change names: rename, link, symlink, unlink, truncate. They always go through the
// gate, so that the collector can hash what they destroy. They are wrapped for one reason: a
// stopped call that the collector has not received yet can be interrupted by a signal handler and
// then fails with EINTR, which these calls otherwise never do. So it is repeated here.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/shim/next_definition.h"
#include "observe/shim/shim.h"
#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

int change(long number, long a, long b = 0, long c = 0, long d = 0, long e = 0) {
  const long result = stopped_call(number, a, b, c, d, e);
  if (!failed(result)) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

using TwoNames = int(const char*, const char*);
using TwoNamesAt = int(int, const char*, int, const char*);
using TwoNamesAtFlags = int(int, const char*, int, const char*, int);
using OneName = int(const char*);
using NameAt = int(int, const char*, int);
using NameLength = int(const char*, off_t);

}  // namespace
}  // namespace assay::shim

using assay::shim::change;
using assay::shim::Function;
using assay::shim::NameAt;
using assay::shim::NameLength;
using assay::shim::OneName;
using assay::shim::other;
using assay::shim::TwoNames;
using assay::shim::TwoNamesAt;
using assay::shim::TwoNamesAtFlags;
using assay::shim::word;

extern "C" {

ASSAY_EXPORTED int rename(const char* from, const char* to) noexcept {
  if (auto* next = other<TwoNames>(Function::kRename)) return next(from, to);
  return change(SYS_rename, word(from), word(to));
}
ASSAY_EXPORTED int renameat(int at, const char* from, int to_at, const char* to) noexcept {
  if (auto* next = other<TwoNamesAt>(Function::kRenameat)) return next(at, from, to_at, to);
  return change(SYS_renameat, at, word(from), to_at, word(to));
}
ASSAY_EXPORTED int renameat2(int at, const char* from, int to_at, const char* to,
                             unsigned flags) noexcept {
  if (auto* next = other<TwoNamesAtFlags>(Function::kRenameat2)) {
    return next(at, from, to_at, to, static_cast<int>(flags));
  }
  // As in the C library: without flags, renameat is used, for kernels without renameat2.
  if (flags == 0) return change(SYS_renameat, at, word(from), to_at, word(to));
  return change(SYS_renameat2, at, word(from), to_at, word(to), flags);
}
ASSAY_EXPORTED int link(const char* from, const char* to) noexcept {
  if (auto* next = other<TwoNames>(Function::kLink)) return next(from, to);
  return change(SYS_link, word(from), word(to));
}
ASSAY_EXPORTED int linkat(int at, const char* from, int to_at, const char* to, int flags) noexcept {
  if (auto* next = other<TwoNamesAtFlags>(Function::kLinkat)) {
    return next(at, from, to_at, to, flags);
  }
  return change(SYS_linkat, at, word(from), to_at, word(to), flags);
}
ASSAY_EXPORTED int symlink(const char* target, const char* path) noexcept {
  return change(SYS_symlink, word(target), word(path));
}
ASSAY_EXPORTED int symlinkat(const char* target, int at, const char* path) noexcept {
  return change(SYS_symlinkat, word(target), at, word(path));
}
ASSAY_EXPORTED int unlink(const char* path) noexcept {
  if (auto* next = other<OneName>(Function::kUnlink)) return next(path);
  return change(SYS_unlink, word(path));
}
ASSAY_EXPORTED int unlinkat(int at, const char* path, int flags) noexcept {
  if (auto* next = other<NameAt>(Function::kUnlinkat)) return next(at, path, flags);
  return change(SYS_unlinkat, at, word(path), flags);
}
ASSAY_EXPORTED int truncate(const char* path, off_t length) noexcept {
  if (auto* next = other<NameLength>(Function::kTruncate)) return next(path, length);
  return change(SYS_truncate, word(path), length);
}
ASSAY_EXPORTED int truncate64(const char* path, off64_t length) noexcept {
  if (auto* next = other<NameLength>(Function::kTruncate64)) return next(path, length);
  return change(SYS_truncate, word(path), length);
}

}  // extern "C"
