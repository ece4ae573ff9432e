// Relocation: the paths of a pack in the folder that it is unpacked into. Pure, but for the folders
// in which commands ran.
#pragma once

#include <filesystem>
#include <string>

#include "lineage/pack/manifest.h"
#include "lineage/reproduce/path_map.h"
#include "store/run.h"

namespace assay::lineage {

class Relocation {
 public:
  // Files of the project have the same place below `folder`; files from elsewhere are in its folder
  // `outside-the-project`, or `outside-the-project-2` where the project has one of that name.
  Relocation(const PackManifest& manifest, const std::filesystem::path& folder);

  // A path of the original in this folder.
  [[nodiscard]] std::string path(const std::string& path) const;
  // Makes the record of a run one as if it had run here, and the folder that it ran in. Git is left
  // out: the source is in place as it was read, and this is no repository.
  void apply(store::RunRecord& run) const;

 private:
  PathMap project_;
  std::string outside_;
};

}  // namespace assay::lineage
