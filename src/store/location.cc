#include "store/location.h"

#include <system_error>

namespace assay::store {
namespace {

namespace fs = std::filesystem;

// Symbolic links are resolved first: "above" means above the directory itself, as for git.
base::Result<fs::path> resolve(const fs::path& from) {
  std::error_code error;
  fs::path directory = fs::canonical(from, error);
  if (error) {
    return base::fail(base::system_error(from.string(), "cannot look for a store from here",
                                         error.value(), "change to a directory that exists"));
  }
  return directory;
}

// Whether something of this name exists, a broken symbolic link included.
base::Result<bool> is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return false;
  if (error) {
    return base::fail(base::system_error(path.string(), "cannot look for a store", error.value(),
                                         "check the permissions of the directories above"));
  }
  return true;
}

// The nearest directory at or above `directory`, which is canonical, that has an entry `name`.
base::Result<std::optional<fs::path>> nearest_with(fs::path directory, const char* name) {
  for (;;) {
    ASSAY_TRY(const bool found, is_there(directory / name));
    if (found) return directory;
    if (!directory.has_relative_path()) return std::nullopt;
    directory = directory.parent_path();
  }
}

}  // namespace

Location location_in(const fs::path& project) {
  const fs::path directory = project / ".assay";
  return {project, directory, directory / "assay.db"};
}

base::Result<std::optional<Location>> find(const fs::path& from) {
  ASSAY_TRY(const fs::path start, resolve(from));
  ASSAY_TRY(const std::optional<fs::path> project, nearest_with(start, ".assay"));
  if (!project) return std::nullopt;
  Location location = location_in(*project);
  std::error_code error;
  if (!fs::is_directory(location.directory, error)) {
    return base::fail(base::unfit_error(location.directory.string(), "is not a directory",
                                        "move it away and run: assay init"));
  }
  return location;
}

base::Result<Location> default_location(const fs::path& from) {
  ASSAY_TRY(const fs::path start, resolve(from));
  ASSAY_TRY(const std::optional<fs::path> checkout, nearest_with(start, ".git"));
  return location_in(checkout.value_or(start));
}

}  // namespace assay::store
