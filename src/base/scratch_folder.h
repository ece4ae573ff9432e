// New folders with names that nobody else has, and one that is removed with its object.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace assay::base {

// Creates a folder in `parent` that only this user may enter: `name` and six random characters.
Result<std::filesystem::path> make_unique_folder(const std::filesystem::path& parent,
                                                 std::string_view name);
// The same in the folder for temporary files (TMPDIR, else /tmp).
Result<std::filesystem::path> make_temporary_folder(std::string_view name);

// A temporary folder that is removed with the object, with everything in it.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(std::string_view name);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace assay::base
