// The repository under test, and files of trees that a test makes up.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace assay::structure {

inline const std::filesystem::path kRepository = ASSAY_SOURCE_DIR;

inline void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

inline std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace assay::structure
