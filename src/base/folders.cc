#include "base/folders.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdlib>

namespace assay::base {
namespace {

namespace fs = std::filesystem;

// A relative path would mean another folder in each working directory.
fs::path absolute_path_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? fs::path(value) : fs::path();
}

// Without the blocks that are reserved for root.
Bytes free_of(const struct statvfs& disk) {
  return Bytes(
      static_cast<std::int64_t>(disk.f_bavail * static_cast<std::uint64_t>(disk.f_frsize)));
}

}  // namespace

fs::path user_cache_folder() {
  if (const fs::path caches = absolute_path_in("XDG_CACHE_HOME"); !caches.empty()) {
    return caches / "assay";
  }
  const fs::path home = absolute_path_in("HOME");
  return home.empty() ? fs::path() : home / ".cache/assay";
}

Result<Bytes> free_space(const fs::path& path) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) == 0) return free_of(disk);
  return fail(system_error(path, "cannot be inspected", errno));
}

Result<Bytes> free_space(int fd, const std::string& where) {
  struct statvfs disk {};
  if (::fstatvfs(fd, &disk) == 0) return free_of(disk);
  return fail(system_error(where, "cannot be inspected", errno));
}

Result<void> check_free_space(const Result<Bytes>& free, Bytes needed, const std::string& where) {
  if (!free || needed <= *free) return {};
  return fail(unfit_error(
      where, fmt::format("needs {}, but the disk has {} free", to_text(needed), to_text(*free)),
      "free some space"));
}

}  // namespace assay::base
