// StagingFolder: where a checkpoint grows, out of sight, until all of it is on the disk. commit()
// then gives it its name in one step; a process that is killed before that leaves a hidden folder,
// which sweep() removes.
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
  // Removes what was not committed.
  ~StagingFolder();

  [[nodiscard]] std::filesystem::path path() const { return root_ / name_; }
  // The folder's files must be on the disk. A step-N that is there already is replaced, and is
  // whole until the moment the new one has its name.
  base::Result<std::filesystem::path> commit();

 private:
  StagingFolder(std::filesystem::path root, std::string name, std::int64_t step)
      : root_(std::move(root)), name_(std::move(name)), step_(step) {}
  base::Result<void> replace(const std::filesystem::path& target);

  std::filesystem::path root_;
  std::string name_;  // empty: committed or moved from
  std::int64_t step_;
};

}  // namespace assay::checkpoint
