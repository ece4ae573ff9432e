// Locks that keep a checkpoint in place while it is read: flock on its manifest. Readers share it,
// whoever removes a checkpoint needs it alone. The kernel drops it when its holder dies.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::checkpoint {

// Held by readers. Where the file system has no locks, this is none.
class ReadLock {
 public:
  // Opens folder and manifest. What stands under the names afterwards does not matter: files are
  // opened relative to the folder that was locked.
  static base::Result<ReadLock> take(const std::filesystem::path& folder);

  // A file of the folder, for reading. Errors name its path.
  [[nodiscard]] base::Result<base::UniqueFd> open(const std::string& name) const;
  // The whole text of the manifest.
  [[nodiscard]] base::Result<std::string> manifest() const;

 private:
  ReadLock(std::filesystem::path path, base::UniqueFd folder, base::UniqueFd manifest)
      : path_(std::move(path)), folder_(std::move(folder)), manifest_(std::move(manifest)) {}

  std::filesystem::path path_;
  base::UniqueFd folder_;
  base::UniqueFd manifest_;
};

// Held by whoever removes.
class RemovalLock {
 public:
  static base::Result<RemovalLock> take(const std::filesystem::path& folder);
  // Somebody reads it, and nothing is locked.
  [[nodiscard]] bool in_use() const { return in_use_; }

 private:
  base::UniqueFd manifest_;
  bool in_use_ = false;
};

}  // namespace assay::checkpoint
