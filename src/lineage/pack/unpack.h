// `assay unpack`: turns a pack into a project with its runs recorded and the files that they need
// in place, so that `assay reproduce` and `assay refresh` can make the results again. Runs nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/pack/manifest.h"

namespace assay::lineage {

struct UnpackReport {
  PackManifest manifest;  // with paths as they are here
  std::vector<std::string> placed;
  std::vector<std::string> older;  // paths of which an older content is in the archive too
};

// `folder` must be new or empty; after an error it is as it was. Files of the project have the same
// place below it, files from elsewhere are in a separate folder (relocation.h).
base::Result<UnpackReport> unpack(const std::filesystem::path& file,
                                  const std::filesystem::path& folder);

}  // namespace assay::lineage
