// Locks that keep a checkpoint in place while it is read: flock on its manifest, shared by readers
// and exclusive for removal. The kernel releases it when the holder exits.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::checkpoint {

// Held by readers. Has no effect on file systems without locks.
class ReadLock {
 public:
  // Opens the folder and its manifest. Later renames do not matter: files are opened relative to
  // the locked folder.
  static base::Result<ReadLock> take(const std::filesystem::path& folder);

  // Opens a file of the folder for reading. Errors name its path.
  [[nodiscard]] base::Result<base::UniqueFd> open(const std::string& name) const;
  // The whole text of the manifest.
  [[nodiscard]] base::Result<std::string> manifest() const;
  // When the manifest was written, and with it the checkpoint.
  [[nodiscard]] base::Result<std::int64_t> written_unix_ns() const;

 private:
  ReadLock(std::filesystem::path path, base::UniqueFd folder, base::UniqueFd manifest)
      : path_(std::move(path)), folder_(std::move(folder)), manifest_(std::move(manifest)) {}

  std::filesystem::path path_;
  base::UniqueFd folder_;
  base::UniqueFd manifest_;
};

// Held while a checkpoint is removed.
class RemovalLock {
 public:
  static base::Result<RemovalLock> take(const std::filesystem::path& folder);
  // The checkpoint has readers; nothing is locked.
  [[nodiscard]] bool in_use() const { return in_use_; }

 private:
  base::UniqueFd manifest_;
  bool in_use_ = false;
};

}  // namespace assay::checkpoint
