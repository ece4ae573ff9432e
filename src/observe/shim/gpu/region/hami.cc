// A region for processes whose limits come from HAMi's variables. All processes of a container
// share it: by the name of HAMi's own cache file if that is given, else by user, pid namespace and
// the limits themselves. It is never removed and outlives its processes, as HAMi's file does, so
// every process takes the limits from its environment, never from the file.
#include "observe/shim/gpu/region/hami.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "observe/shim/gpu/region/process.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

HamiSettings settings;
char cache_path[kPathSize];
char invalid_variable[64];
bool read = false;
constinit std::atomic<bool> logged_invalid{false};
bool own_region = false;

// The environment at process start: programs change theirs.
__attribute__((constructor)) void read_settings() {
  if (read) return;
  read = true;
  settings = hami_settings(environ);
  if (settings.cache != nullptr && strlen(settings.cache) < sizeof cache_path) {
    memcpy(cache_path, settings.cache, strlen(settings.cache));
  }
  if (settings.invalid != nullptr) {
    const char* end = strchr(settings.invalid, '=');
    if (end - settings.invalid < static_cast<long>(sizeof invalid_variable)) {
      memcpy(invalid_variable, settings.invalid, static_cast<std::size_t>(end - settings.invalid));
    }
  }
  settings.cache = nullptr;  // both point into the environment
  settings.invalid = nullptr;
}

// Logged once, even if no valid limit is left.
void warn_of_invalid_variable() {
  if (invalid_variable[0] == 0 || logged_invalid.exchange(true)) return;
  char line[128];
  snprintf(line, sizeof line, "%s is not understood, and ignored", invalid_variable);
  log_line(line);
}

std::uint64_t hash_of_settings() {
  struct stat status {};
  std::uint64_t hash = stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
  // `hash` is that of the preceding fields, in this order.
  const auto add = [&](std::uint64_t value) { hash = wire::gpu_mix(hash ^ value); };
  add(settings.bytes);
  add(settings.share);
  add(settings.priority);
  for (const std::uint64_t bytes : settings.bytes_of) add(bytes);
  for (const std::uint32_t share : settings.share_of) add(share);
  return hash;
}

enum class FileState { kGood, kNotThere, kGarbage, kForeign };

FileState judge(int file, bool must_be_ours) {
  struct stat status {};
  wire::GpuHeader header{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
      (must_be_ours && status.st_uid != geteuid())) {
    return FileState::kForeign;
  }
  const ssize_t size = pread(file, &header, sizeof header, 0);
  const bool valid = size == static_cast<ssize_t>(sizeof header) &&
                     wire::is_valid(header, static_cast<std::uint64_t>(status.st_size));
  return valid ? FileState::kGood : FileState::kGarbage;
}

// Atomic: the file gets its name when the region in it is complete. A process that is not the first
// also gets -1 and opens the first one's file.
int make_file(const char* path, mode_t mode) {
  char folder[kPathSize];
  char self[40];
  snprintf(folder, sizeof folder, "%s", path);
  char* slash = strrchr(folder, '/');
  if (slash == nullptr) return -1;
  slash[1] = 0;
  const int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (file >= 0) {
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    if (wire::make_gpu_region(file) && fchmod(file, mode) == 0 &&
        linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
      return file;
    }
    close(file);
    return -1;
  }
  // For file systems without O_TMPFILE.
  char name[kPathSize];
  if (snprintf(name, sizeof name, "%s.%d", path, getpid()) >= static_cast<int>(sizeof name)) {
    return -1;
  }
  const int named = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, mode);
  if (named < 0) return -1;
  const bool made =
      wire::make_gpu_region(named) && fchmod(named, mode) == 0 && link(name, path) == 0;
  unlink(name);
  if (made) return named;
  close(named);
  return -1;
}

// A file that is not a region is removed, by one process at a time: the others then find a new
// file.
void remove_garbage(int file, const char* path) {
  constexpr timespec kWhile{0, 2'000'000};
  for (int round = 0; flock(file, LOCK_EX | LOCK_NB) != 0; ++round) {
    if (round == 50) return;
    nanosleep(&kWhile, nullptr);
  }
  struct stat opened {};
  struct stat named {};
  if (fstat(file, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
      opened.st_dev == named.st_dev && judge(file, false) == FileState::kGarbage) {
    unlink(path);
  }
}

int open_or_make(const char* path, mode_t mode, bool must_be_ours) {
  for (int round = 0; round < 4; ++round) {
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
    const FileState found = file >= 0 ? judge(file, must_be_ours) : FileState::kNotThere;
    if (found == FileState::kGood) return file;
    if (found == FileState::kGarbage) remove_garbage(file, path);
    if (file >= 0) close(file);
    if (found == FileState::kForeign || (file < 0 && errno != ENOENT)) return -1;
    if (found == FileState::kGarbage) continue;
    if (const int made = make_file(path, mode); made >= 0) return made;
  }
  return -1;
}

template <typename Word, typename Value>
bool put(std::atomic<Word>& to, Value value) {
  return to.exchange(value) != value;
}

}  // namespace

const HamiSettings& hami() {
  read_settings();
  return settings;
}

bool hami_wants_region() {
  read_settings();
  warn_of_invalid_variable();
  return settings.given;
}

int open_hami_region(char* path, std::size_t size) {
  own_region = true;
  // It has another format than HAMi's, so it has another name; users of one container share the
  // limits.
  constexpr mode_t kEverybody = 0666;
  constexpr mode_t kOwner = 0600;
  if (cache_path[0] != 0 && snprintf(path, size, "%s.assay-gpu-%u", cache_path, wire::kGpuVersion) <
                                static_cast<int>(size)) {
    if (const int file = open_or_make(path, kEverybody, false); file >= 0) return file;
    log_line("CUDA_DEVICE_MEMORY_SHARED_CACHE: the file cannot be created");
  }
  snprintf(path, size, "/dev/shm/assay-gpu-hami-%u-%016llx-%u", geteuid(),
           static_cast<unsigned long long>(hash_of_settings()), wire::kGpuVersion);
  if (const int file = open_or_make(path, kOwner, true); file >= 0) return file;
  path[0] = 0;
  const int file = memfd_create("assay-gpu", MFD_CLOEXEC);
  if (file < 0) return -1;
  log_line("no file for the region: limits apply only to this process and its children");
  if (wire::make_gpu_region(file)) return file;
  close(file);
  return -1;
}

void set_hami_limits() {
  wire::GpuHeader& header = process.region->header;
  bool changed = put(header.limits.bytes, settings.bytes);
  changed = put(header.limits.share, settings.share) || changed;
  changed = put(header.limits.priority, settings.priority) || changed;
  if (changed) header.generation.fetch_add(1);
}

void set_hami_limits(int ordinal, std::uint32_t device_index) {
  const HamiSettings& configured = hami();
  warn_of_invalid_variable();
  if (!configured.given || ordinal >= kHamiDevices) return;
  wire::GpuHeader& header = region()->header;
  wire::GpuLimits& limits = region()->devices[device_index].limits;
  std::uint64_t bytes = configured.bytes_of[ordinal];
  std::uint32_t share = configured.share_of[ordinal];
  bool changed = false;
  if (own_region) {
    changed = put(limits.bytes, bytes);
    changed = put(limits.share, share) || changed;
  } else {
    // `assay run` has made the region: its limits have precedence.
    if (bytes == 0) bytes = configured.bytes;
    if (share == 0) share = configured.share;
    if (header.limits.bytes.load() == 0 && limits.bytes.load() == 0 && bytes != 0) {
      changed = put(limits.bytes, bytes);
    }
    if (header.limits.share.load() == 0 && limits.share.load() == 0 && share != 0) {
      changed = put(limits.share, share) || changed;
    }
  }
  if (changed) header.generation.fetch_add(1);
}

std::uint64_t hami_limit_of(int ordinal) {
  return own_region && ordinal >= 0 && ordinal < kHamiDevices ? settings.bytes_of[ordinal] : 0;
}

}  // namespace assay::gpu
