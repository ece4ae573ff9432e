// FreshFolder: the folder that a pack is unpacked into.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace assay::lineage {

// Starts with a new or empty folder, and restores that state unless keep() is called.
class FreshFolder {
 public:
  static base::Result<FreshFolder> make(const std::filesystem::path& folder);
  FreshFolder(FreshFolder&& other) noexcept;
  FreshFolder& operator=(FreshFolder&&) = delete;
  ~FreshFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  FreshFolder(std::filesystem::path path, bool made) : path_(std::move(path)), made_(made) {}
  std::filesystem::path path_;
  bool made_;
};

}  // namespace assay::lineage
