#include "lineage/track/created_folders.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>

namespace assay::lineage {

bool created_at_or_after(const std::string& folder, std::int64_t since_ns) {
  if (since_ns == 0) return false;
  struct statx status {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) != 0 ||
      (status.stx_mask & STATX_BTIME) == 0) {
    return false;
  }
  return status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec >= since_ns;
}

void CreatedFolders::add_output(std::string_view path) {
  const std::string_view folder = path.substr(0, path.rfind('/'));
  if (folder.empty() || folder == last_) return;
  last_ = folder;
  folders_.insert(last_);
}

std::vector<std::string> CreatedFolders::created_since(std::int64_t since_ns) const {
  std::map<std::string, bool> made;
  for (const std::string& folder : folders_) {
    // Stops at a folder that existed before the run: those above it did too, unless it was moved
    // there.
    for (std::string at = folder; !at.empty(); at.resize(at.rfind('/'))) {
      const auto [known, added] = made.try_emplace(at, false);
      if (!added) break;
      known->second = created_at_or_after(at, since_ns);
      if (!known->second) break;
    }
  }
  std::vector<std::string> list;
  for (const auto& [folder, is] : made) {
    if (is) list.push_back(folder);
  }
  return list;
}

}  // namespace assay::lineage
