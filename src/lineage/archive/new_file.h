// NewFile: a temporary file that is renamed to its final name when complete, and removed otherwise.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::lineage {

class NewFile {
 public:
  // In the folder of the final name, under a temporary name that begins with `prefix`.
  static base::Result<NewFile> make(const std::filesystem::path& folder, std::string_view prefix);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  enum class Existing { kKeep, kReplace };  // kKeep: an error if something is there
  base::Result<void> rename_to(const std::filesystem::path& path, Existing existing);
  // The same, after syncing its content to disk.
  base::Result<void> sync_and_rename_to(const std::filesystem::path& path, Existing existing);

 private:
  NewFile(std::string name, base::UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}
  std::string name_;
  base::UniqueFd fd_;
};

}  // namespace assay::lineage
