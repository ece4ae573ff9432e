// StagingFolder: the hidden folder in which a checkpoint is written until all of it is on disk.
// commit() then renames it atomically; a process killed before that leaves a hidden folder, which
// sweep() removes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace assay::checkpoint {

class StagingFolder {
 public:
  static base::Result<StagingFolder> create(const std::filesystem::path& root, std::int64_t step);
  StagingFolder(StagingFolder&& other) noexcept;
  StagingFolder& operator=(StagingFolder&&) = delete;
  // Removes an uncommitted folder.
  ~StagingFolder();

  [[nodiscard]] std::filesystem::path path() const { return root_ / name_; }
  // The folder's files must be on disk already. An existing step-N is replaced; it stays intact
  // until the new one has taken its name.
  base::Result<std::filesystem::path> commit();
  // Removes the folder now.
  void discard();

 private:
  StagingFolder(std::filesystem::path root, std::string name, std::int64_t step)
      : root_(std::move(root)), name_(std::move(name)), step_(step) {}
  base::Result<void> replace(const std::filesystem::path& target);

  std::filesystem::path root_;
  std::string name_;  // empty: committed or moved from
  std::int64_t step_;
};

}  // namespace assay::checkpoint
