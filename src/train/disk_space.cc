#include "train/disk_space.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace assay::train {

std::int64_t FutureCheckpoints::at_once() const {
  if (keep == 0) return count;
  return std::min(count, std::max<std::int64_t>(1, keep + 1 - existing));
}

base::Result<base::Bytes> free_space(const std::filesystem::path& folder) {
  struct statvfs system {};
  if (::statvfs(folder.c_str(), &system) != 0) {
    return base::fail(base::system_error(folder, "cannot be inspected", errno));
  }
  return base::Bytes(
      static_cast<std::int64_t>(system.f_bavail * static_cast<std::uint64_t>(system.f_frsize)));
}

base::Result<std::string> check_disk_space(const std::filesystem::path& folder, base::Bytes free,
                                           const FutureCheckpoints& future) {
  const std::int64_t fit = future.bytes > 0 ? free.count() / future.bytes : future.at_once();
  if (fit >= future.at_once()) return std::string();
  const std::string each = base::to_text(base::Bytes(future.bytes));
  if (future.keep == 0 && fit > 0) {
    return fmt::format(
        "{} has room for {} of the {} checkpoints to come, of {} each: move some "
        "away in time, or set checkpoint.keep",
        folder.string(), fit, future.at_once(), each);
  }
  return base::fail(base::unfit_error(
      folder,
      fmt::format("has {} free, but needs room for {} checkpoint{} of {}{}", base::to_text(free),
                  future.at_once(), future.at_once() == 1 ? "" : "s", each,
                  future.at_once() == 1 ? "" : " at a time"),
      "free some, lower checkpoint.keep, or name another disk with --out"));
}

}  // namespace assay::train
