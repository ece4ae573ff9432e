// CUDA libraries that were loaded, by the versions in their names: libcublas.so.12.4.5.8. They are
// listed beside the packages that they may belong to, because they also come from archives and
// containers that no package manager knows.
#pragma once

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

// What is installed here: in the folders of the system, of /usr/local/cuda and of LD_LIBRARY_PATH.
std::optional<std::string> installed_cuda_library(const std::string& name);

}  // namespace assay::lineage
