// Relocation: maps the paths of a pack into the folder where it is unpacked. Pure, except that
// apply() creates the folders in which commands ran.
#pragma once

#include <filesystem>
#include <string>

#include "base/path_map.h"
#include "lineage/pack/manifest.h"
#include "store/run.h"

namespace assay::lineage {

class Relocation {
 public:
  // Files of the project have the same place below `folder`. Files from elsewhere are in its
  // subfolder `outside-the-project`, or `outside-the-project-2` if the project has one of that
  // name.
  Relocation(const PackManifest& manifest, const std::filesystem::path& folder);

  // The new place of a path of the original.
  [[nodiscard]] std::string path(const std::string& path) const;
  // Changes the record as if the run had run here, and creates the folder that it ran in. Removes
  // its Git state: the source files are in place as they were read, and this is not a repository.
  void apply(store::RunRecord& run) const;

 private:
  base::PathMap project_;
  std::string outside_;
};

}  // namespace assay::lineage
