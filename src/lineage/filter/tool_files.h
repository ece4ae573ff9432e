// ToolFiles: lock, temporary and cache files of known tools, by the patterns of tool_files.ignore.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

class ToolFiles {
 public:
  // The patterns of tool_files.ignore, which is compiled in.
  static const ToolFiles& known();
  // `patterns` is the text of such a file.
  explicit ToolFiles(std::string_view patterns);

  // Whether the folder is a known tool's folder, or below one.
  [[nodiscard]] bool has_folder(std::string_view folder) const;
  [[nodiscard]] bool has_name(std::string_view name) const;

 private:
  std::vector<std::vector<std::string>> folders_;  // each as its components
  std::vector<std::string> names_;
};

}  // namespace assay::lineage
