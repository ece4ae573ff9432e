// Folders that exist for one test: TempDir in the temporary folder, MemoryDir in memory.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace assay::base::testing {

// A folder in memory, for tests that create thousands of files or sync often: on disk that would
// dominate their time and make it depend on other users of the disk. scripts/run-tests sets
// ASSAY_TEST_MEMORY to a folder of the test run; a test started by hand uses /dev/shm.
inline std::filesystem::path memory_folder() {
  if (const char* given = std::getenv("ASSAY_TEST_MEMORY"); given != nullptr) return given;
  const bool usable = ::access("/dev/shm", R_OK | W_OK | X_OK) == 0;
  return usable ? "/dev/shm" : std::filesystem::temp_directory_path();
}

class TempDir {
 public:
  TempDir() : TempDir(std::filesystem::temp_directory_path()) {}
  explicit TempDir(const std::filesystem::path& parent) {
    std::string pattern = (parent / "assay-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class MemoryDir : public TempDir {
 public:
  MemoryDir() : TempDir(memory_folder()) {}
};

}  // namespace assay::base::testing
