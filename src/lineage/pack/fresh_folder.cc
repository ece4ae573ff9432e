#include "lineage/pack/fresh_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace assay::lineage {

namespace fs = std::filesystem;

base::Result<FreshFolder> FreshFolder::make(const fs::path& folder) {
  const bool made = ::mkdir(folder.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) {
    return base::fail(base::system_error(folder, "cannot be created", errno));
  }
  std::error_code error;
  const bool empty =
      fs::is_directory(fs::symlink_status(folder, error)) && fs::is_empty(folder, error) && !error;
  if (!empty) {
    return base::fail(
        base::usage_error(folder, "is not an empty folder", "name a new one with --directory"));
  }
  fs::path real = fs::canonical(folder, error);
  if (error) return base::fail(base::system_error(folder, "cannot be read", error.value()));
  return FreshFolder(std::move(real), made);
}

FreshFolder::FreshFolder(FreshFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), made_(other.made_) {}

FreshFolder::~FreshFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  for (fs::directory_iterator entry(path_, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code left;
    fs::remove_all(entry->path(), left);
  }
  if (made_) fs::remove(path_, ignored);
}

}  // namespace assay::lineage
