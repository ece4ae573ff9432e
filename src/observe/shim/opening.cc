#include "observe/shim/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "observe/shim/created_file.h"
#include "observe/shim/event.h"
#include "observe/shim/recorded_opens.h"
#include "observe/shim/system_call.h"
#include "observe/wire/system_folders.h"

namespace assay::shim {
namespace {

// Opens that can block (pipes, devices), which signals interrupt with or without the shim.
bool can_wait(int directory, const char* path) {
  struct stat status;
  return gate_call(SYS_newfstatat, directory, path, &status, 0) != 0 || !S_ISREG(status.st_mode);
}

long open_ordinary(int directory, const char* path, int flags, mode_t mode) {
  const long result = ordinary_call(SYS_openat, directory, path, flags, mode);
  const bool ours = result == -ENOSYS || (result == -EINTR && on() && !can_wait(directory, path));
  if (__builtin_expect(!ours, 1)) return result;
  return stopped_call(SYS_openat, directory, word(path), flags, mode);
}

constexpr std::uint64_t kOpenDirectory = 0xD1EC'702A'D1EC'702A;

// Computes the key of a name in a directory. False: it has none, because the name is relative to a
// descriptor, whose number does not identify the directory.
bool key_of_name(std::uint64_t salt, int directory, const char* path, std::uint64_t& key) {
  std::uint64_t place = kAbsolute;
  if (path[0] != '/' && directory == AT_FDCWD) {
    place = shim.moves.load(std::memory_order_acquire);
  } else if (path[0] != '/') {
    struct stat status;
    if (gate_call(SYS_fstat, directory, &status) != 0) return false;
    place = fold(status.st_ino ^ kOpenDirectory, status.st_dev + kOpenDirectory);
  }
  key = recorded_key(path, strlen(path), salt, place);
  return true;
}

bool is_in_project(const char* path) {
  const wire::LogHeader& header = *shim.header;
  return wire::is_below(path, header.project, header.project_length);
}

// Records a name in a directory at most once per process. If the log is full, it is recorded at the
// next lookup.
void note(wire::RecordOp op, std::uint16_t flags, std::uint64_t salt, int directory,
          const char* path) {
  if (path[0] == 0 || !log_ready()) return;
  const bool moving = (shim.moves.load(std::memory_order_acquire) & kMoving) != 0;
  if (path[0] != '/' && directory == AT_FDCWD && moving) return;
  std::uint64_t key = 0;
  const bool keyed = key_of_name(salt, directory, path, key);
  if (keyed && is_recorded(key)) return;
  record_name(op, flags, directory, path, strlen(path));
  if (keyed) remember(key);
}

// Used in keys instead of the epoch, on which these records do not depend.
constexpr std::uint64_t kAbsentName = 0xAB5E'17AB'5E17'AB5E;
constexpr std::uint64_t kListedOnce = 0x115E'D115'ED11'5ED1;
constexpr std::uint64_t kListedAgain = ~kListedOnce;
constexpr std::uint64_t kQueriedName = 0x0A5C'ED0A'5CED'0A5C;
constexpr std::uint64_t kQueriedSize = ~kQueriedName;

// Whether nothing is recorded of a folder, or of a missing name, at this path.
bool is_left_out(const char* path) {
  return path[0] == '/' && wire::is_system_path(path) && !is_in_project(path);
}

// The path is read only after the kernel has accepted it: a bad pointer must give EFAULT, not
// crash.
long open_for_reading(int directory, const char* path, int flags) {
  const std::uint64_t epoch = shim.header->epoch.load(std::memory_order_acquire);
  const std::uint64_t moves = shim.moves.load(std::memory_order_acquire);
  const long file = gate_call(SYS_openat, directory, path, flags, 0);
  if (failed(file)) {
    if (file == -ENOENT) note_absent(directory, path);
    return file;
  }

  // Remembered only if epoch and directory were the same before and after the open, so that a name
  // that came to refer to another file is recorded again.
  const std::size_t length = strlen(path);
  std::uint64_t key = 0;
  if (epoch == shim.header->epoch.load(std::memory_order_acquire)) {
    if (path[0] == '/') {
      key = recorded_key(path, length, epoch, kAbsolute);
    } else if (directory == AT_FDCWD && (moves & kMoving) == 0 &&
               moves == shim.moves.load(std::memory_order_acquire)) {
      key = recorded_key(path, length, epoch, moves);
    }
    if (key != 0 && is_recorded(key)) return file;
  }

  struct stat status;
  if (gate_call(SYS_fstat, file, &status) != 0) return file;  // another thread has closed it
  if (S_ISREG(status.st_mode)) {
    record_open(wire::RecordOp::kRead, static_cast<int>(file), status, directory, path, length);
  } else if (S_ISDIR(status.st_mode)) {
    return file;  // perhaps to list it (libc_listing.cc), perhaps to come back to it or to sync it
  }
  if (key != 0) remember(key);
  return file;
}

// Most files that are opened with O_CREAT are new. With O_EXCL the call succeeds only for a new
// file, which destroys nothing, so the collector need not be involved. On any other result the call
// is made again as the program made it: the name exists, is a dangling link, the file system does
// not support O_EXCL, or the error would be another one without O_EXCL.
long open_creating(int directory, const char* path, int flags, mode_t mode) {
  const long file = gate_call(SYS_openat, directory, path, (flags | O_EXCL) & ~O_TRUNC, mode);
  if (failed(file)) {
    if ((flags & O_EXCL) != 0) return file;
    return open_ordinary(directory, path, flags, mode);
  }
  struct stat status;
  if (gate_call(SYS_fstat, file, &status) == 0) {
    record_open(wire::RecordOp::kCreate, static_cast<int>(file), status, directory, path,
                strlen(path));
    remember_created(status);
  }
  return file;
}

}  // namespace

void note_absent(int directory, const char* path) {
  if (!is_left_out(path)) note(wire::RecordOp::kAbsent, 0, kAbsentName, directory, path);
}

// Up to two listings of a folder are recorded: Python lists the folders that it imports from once,
// so a second listing was made by the program itself.
void note_listed(int directory, const char* path) {
  if (is_left_out(path)) return;
  const std::uint16_t flags = path[0] == '/' ? 0 : wire::flag::kRelative;
  std::uint64_t key = 0;
  if (key_of_name(kListedOnce, directory, path, key) && is_recorded(key)) {
    return note(wire::RecordOp::kList, flags, kListedAgain, directory, path);
  }
  note(wire::RecordOp::kList, flags, kListedOnce, directory, path);
}

void note_queried(int directory, const char* path, bool size) {
  if (is_left_out(path)) return;
  note(wire::RecordOp::kQueried, size ? wire::flag::kSize : 0, size ? kQueriedSize : kQueriedName,
       directory, path);
}

bool takes_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

long open_file(int directory, const char* path, int flags, mode_t mode) {
  if (!on()) return open_ordinary(directory, path, flags, mode);
  // No content can be reached through these.
  if ((flags & O_PATH) != 0 || ((flags & O_DIRECTORY) != 0 && !takes_mode(flags))) {
    const long folder = gate_call(SYS_openat, directory, path, flags, mode);
    if ((flags & O_PATH) != 0) return folder;
    if (folder == -ENOENT) note_absent(directory, path);
    return folder;
  }
  const int access = flags & O_ACCMODE;
  constexpr int kChanges = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  if (access == O_RDONLY && (flags & kChanges) == 0) {
    if (log_ready()) return open_for_reading(directory, path, flags);
  } else if ((access == O_WRONLY || access == O_RDWR) && (flags & O_CREAT) != 0 &&
             (flags & O_TMPFILE) == 0) {  // nor O_DIRECTORY, which is a bit of it
    if (log_ready()) return open_creating(directory, path, flags, mode);
  }
  // Existing files that may be changed, files without a name, and unusual flags.
  return open_ordinary(directory, path, flags, mode);
}

}  // namespace assay::shim
