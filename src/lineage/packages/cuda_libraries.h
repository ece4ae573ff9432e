// CUDA libraries that were loaded and belong to no package, because they come from archives or
// containers; their versions are taken from their names: libcublas.so.12.4.5.8.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class CudaLibraries {
 public:
  // A path without symbolic links.
  void add(std::string_view path);
  // "cuda", "libcublas", "12.4.5.8"
  [[nodiscard]] std::vector<store::Package> packages() const;

 private:
  std::map<std::string, std::string, std::less<>> versions_;
};

// Whether this is one of CUDA's libraries, with a version in its name.
bool is_cuda_library(std::string_view path);

// The version of the library installed here, searched in LD_LIBRARY_PATH, below these prefixes, in
// /usr/local/cuda and in the system's folders.
std::optional<std::string> installed_cuda_library(
    const std::string& name, const std::vector<std::filesystem::path>& prefixes);

// Whether two versions agree in the components that both have: 12 and 12.4.5.8 do.
bool versions_agree(std::string_view a, std::string_view b);

}  // namespace assay::lineage
