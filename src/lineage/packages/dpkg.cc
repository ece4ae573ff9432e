#include "lineage/packages/dpkg.h"

#include <algorithm>
#include <array>

namespace assay::lineage {

bool is_of_distribution(std::string_view path) {
  static constexpr std::array<std::string_view, 11> kFolders = {
      "/lib/", "/lib64/", "/lib32/", "/libx32/", "/bin/", "/sbin/",
      "/etc/", "/opt/",   "/var/",   "/boot/",   "/srv/"};
  if (path.starts_with("/usr/")) return !path.starts_with("/usr/local/");
  return std::any_of(kFolders.begin(), kFolders.end(),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

void DpkgPackages::saw(std::string_view path) {
  if (!opened_) {
    opened_ = true;
    index_ = DpkgIndex::open(root_ / "var/lib/dpkg", cache_);
    seen_.resize(index_.packages());
  }
  if (const auto owner = index_.owner(path)) seen_[*owner] = true;
}

std::vector<store::Package> DpkgPackages::packages() const {
  std::vector<store::Package> found;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!seen_[i]) continue;
    found.push_back({.manager = "dpkg",
                     .name = std::string(index_.name(i)),
                     .version = std::string(index_.version(i))});
  }
  return found;
}

}  // namespace assay::lineage
