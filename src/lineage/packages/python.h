// Python distributions whose modules were loaded: found by the folder (site-packages) and the
// metadata of its *.dist-info.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class PythonPackages {
 public:
  explicit PythonPackages(std::filesystem::path root) : root_(std::move(root)) {}

  // `end` is the offset of the part below site-packages; 0 if the path is not in one.
  void add(std::string_view path, std::size_t end);
  [[nodiscard]] std::vector<store::Package> packages();
  // Call after packages(): whether one of them installed this file, which must have been added.
  [[nodiscard]] bool owns(std::string_view path, std::size_t end) const;

 private:
  // Site folder -> the modules that were opened: "numpy/core", "six.py". Two path components,
  // because several distributions share a first one (google, nvidia).
  std::map<std::string, std::set<std::string>, std::less<>> sites_;
  std::set<std::string, std::less<>> owned_;  // site folder and module
  std::unordered_set<std::uint64_t> seen_;    // hashes of site and module: most files add nothing
  // Folders of modules elsewhere, for editable installations.
  std::set<std::string, std::less<>> folders_;
  std::string last_folder_;
  std::filesystem::path root_;
};

}  // namespace assay::lineage
