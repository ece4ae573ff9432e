#include "lineage/archive/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace assay::lineage {

base::Result<NewFile> NewFile::make(const std::filesystem::path& folder, std::string_view prefix) {
  std::string name = (folder / fmt::format("{}XXXXXX", prefix)).string();
  base::UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return base::fail(base::system_error(folder, "cannot be written", errno));
  return NewFile(std::move(name), std::move(fd));
}

NewFile::NewFile(NewFile&& other) noexcept
    : name_(std::exchange(other.name_, {})), fd_(std::move(other.fd_)) {}

NewFile::~NewFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

base::Result<void> NewFile::rename_to(const std::filesystem::path& path, Existing existing) {
  const bool keep = existing == Existing::kKeep;
  int failed =
      ::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, path.c_str(), keep ? RENAME_NOREPLACE : 0);
  if (failed != 0 && keep && errno == EINVAL) {
    // The file system does not support RENAME_NOREPLACE; link() does not replace an existing file
    // either.
    failed = ::link(name_.c_str(), path.c_str());
    if (failed == 0) ::unlink(name_.c_str());
  }
  if (failed != 0) return base::fail(base::system_error(path, "cannot be created", errno));
  name_.clear();
  return {};
}

base::Result<void> NewFile::sync_and_rename_to(const std::filesystem::path& path,
                                               Existing existing) {
  if (::fsync(fd_.get()) != 0) {
    return base::fail(base::system_error(path, "cannot be written", errno));
  }
  return rename_to(path, existing);
}

}  // namespace assay::lineage
