// PackageFinder: which installed packages a run used, from the paths it opened.
//
//   PackageFinder finder({.cache = base::user_cache_folder()});
//   for (…) finder.add(path);      // every path of the run, including those the filter leaves out
//   finder.packages();
//
// dpkg: files of /var/lib/dpkg/info. pip: distributions of site-packages, including editable ones.
// conda: conda-meta of the environment a file is in. cuda: libraries with a version in their name.
// Use it after the command has ended: the first path below /usr may build the index of dpkg's
// files.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

struct PackageOptions {
  std::filesystem::path root = "/";  // paths are looked up below it; another one for tests
  // Where the index of dpkg's files is kept between runs; empty: it is built each time.
  std::filesystem::path cache = {};
};

class PackageFinder {
 public:
  explicit PackageFinder(const PackageOptions& options = {});
  PackageFinder(PackageFinder&&) noexcept;
  PackageFinder& operator=(PackageFinder&&) noexcept;
  ~PackageFinder();

  // An absolute path. Takes well under a microsecond, also for repeated paths.
  void add(std::string_view path);
  // The packages of all paths added so far, sorted, without duplicates.
  std::vector<store::Package> packages();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace assay::lineage
