#include "observe/shim/directory_name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "observe/shim/system_call.h"

namespace assay::shim {
namespace {

// A directory's name, and what must be unchanged for it to be the name still: the directory, its
// change time (renaming it sets that) and the log's epoch (renaming a folder above it increases
// that). Another program may rename a folder above it unnoticed; the file is then reported where it
// is not, and the run is not complete.
struct KnownName {
  std::uint32_t version;  // odd while it is written: a signal handler may interrupt that
  std::uint32_t length;   // 0: none
  std::uint64_t device;
  std::uint64_t inode;
  std::int64_t change_s;
  std::int64_t change_ns;
  std::uint64_t epoch;
  char text[464];
};
static_assert(sizeof(KnownName) == 512);
thread_local constinit KnownName known_name{};

bool is_about(const KnownName& known, const struct stat& status, std::uint64_t epoch) {
  return known.length > 0 && known.inode == status.st_ino && known.device == status.st_dev &&
         known.change_s == status.st_ctim.tv_sec && known.change_ns == status.st_ctim.tv_nsec &&
         known.epoch == epoch;
}

void fence() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

bool recall(const struct stat& status, std::uint64_t epoch, char* buffer, std::size_t& length) {
  const std::uint32_t version = known_name.version;
  fence();
  if (version % 2 != 0 || !is_about(known_name, status, epoch)) return false;
  length = known_name.length;
  memcpy(buffer, known_name.text, length);
  fence();
  return known_name.version == version;
}

void keep(const struct stat& status, std::uint64_t epoch, Text name) {
  if (known_name.version % 2 != 0 || name.length > sizeof known_name.text) return;
  known_name.version += 1;
  fence();
  known_name.length = static_cast<std::uint32_t>(name.length);
  known_name.device = status.st_dev;
  known_name.inode = status.st_ino;
  known_name.change_s = status.st_ctim.tv_sec;
  known_name.change_ns = status.st_ctim.tv_nsec;
  known_name.epoch = epoch;
  memcpy(known_name.text, name.data, name.length);
  fence();
  known_name.version += 1;
}

}  // namespace

bool ends_deleted(Text name) {
  return name.length > kDeletedLength &&
         memcmp(name.data + name.length - kDeletedLength, kDeleted, kDeletedLength) == 0;
}

Text name_of_descriptor(int file, char* buffer, std::size_t size) {
  constexpr char kFolder[] = "/proc/self/fd/";
  char link[sizeof kFolder + 12];
  memcpy(link, kFolder, sizeof kFolder);
  char digits[12];
  std::size_t count = 0;
  for (unsigned rest = static_cast<unsigned>(file); count == 0 || rest > 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  for (std::size_t i = 0; i < count; ++i) {
    link[sizeof kFolder - 1 + i] = digits[count - 1 - i];
  }
  link[sizeof kFolder - 1 + count] = 0;
  const long result = gate_call(SYS_readlink, link, buffer, size);
  if (failed(result)) return {.too_long = result == -ENAMETOOLONG};
  if (result == 0 || buffer[0] != '/') return {};
  return {buffer, static_cast<std::size_t>(result)};
}

Text name_of_directory(int directory, char* buffer, std::size_t size) {
  if (directory == AT_FDCWD) {
    const long result = gate_call(SYS_getcwd, buffer, size);  // counts the terminator
    if (failed(result) || buffer[0] != '/') return {};        // else: "(unreachable)/…"
    return {buffer, static_cast<std::size_t>(result) - 1};
  }
  const std::uint64_t epoch = shim.header->epoch.load(std::memory_order_acquire);
  struct stat status;
  if (gate_call(SYS_fstat, directory, &status) != 0) return {};  // another thread has closed it
  std::size_t length = 0;
  if (recall(status, epoch, buffer, length)) return {buffer, length};
  const Text name = name_of_descriptor(directory, buffer, size);
  if (ends_deleted(name)) return {};  // or really named so: the file's own name decides
  if (name.length > 0) keep(status, epoch, name);
  return name;
}

}  // namespace assay::shim
