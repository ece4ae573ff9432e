// Copies of programs that every user can run. A checkout may lie where only its owner may enter, as
// in root's home; a test that becomes another user runs these.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay::support {

class ReachableCopy {
 public:
  explicit ReachableCopy(const std::vector<std::filesystem::path>& files) {
    std::filesystem::permissions(folder_.path(), kForAll);
    for (const std::filesystem::path& file : files) {
      std::filesystem::copy_file(file, folder_.path() / file.filename());
      std::filesystem::permissions(folder_.path() / file.filename(), kForAll);
    }
  }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  static constexpr auto kForAll = std::filesystem::perms(0755);
  base::testing::TempDir folder_;
};

// The regular files in a folder.
inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

// program(), copied with the libraries that stand beside it; once for all tests of a process.
inline const std::string& reachable_program() {
  static const std::filesystem::path kFile = program();
  static const ReachableCopy kCopy(
      {kFile, kFile.parent_path() / "libassay-shim.so", kFile.parent_path() / "libassay-gpu.so"});
  static const std::string kProgram = (kCopy.folder() / kFile.filename()).string();
  return kProgram;
}

}  // namespace assay::support
