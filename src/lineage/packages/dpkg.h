// The files of Debian packages, through an index that is made once per state of dpkg: reading its
// thousands of lists for every run would cost more than most runs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lineage/packages/dpkg_index.h"
#include "store/run.h"

namespace assay::lineage {

// Whether dpkg may own a file of this name, judged by the folder alone.
bool is_of_distribution(std::string_view path);

class DpkgPackages {
 public:
  DpkgPackages(std::filesystem::path root, std::filesystem::path cache)
      : root_(std::move(root)), cache_(std::move(cache)) {}

  void saw(std::string_view path);
  [[nodiscard]] std::vector<store::Package> packages() const;

 private:
  std::filesystem::path root_, cache_;
  bool opened_ = false;
  DpkgIndex index_;
  std::vector<bool> seen_;
};

}  // namespace assay::lineage
