// `assay pack`: what it takes to make something again elsewhere, as one file: the runs, what they
// need by content, their source's diff, environment (redacted when it was recorded) and packages.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "lineage/graph/resolve.h"
#include "lineage/pack/manifest.h"
#include "store/store.h"

namespace assay::lineage {

struct PackReport {
  PackManifest manifest;
  std::int64_t contents_bytes = 0;
  std::int64_t file_bytes = 0;
};

// The file appears whole or not at all, and replaces another one only if `replace`. Its name says
// whether it is compressed: ".tar" is not. An error when a needed content is neither on disk nor
// archived. Files that hold secrets, by name or content, are left out and listed.
base::Result<PackReport> pack(store::Store& store, const RunOrArtifact& what,
                              const std::filesystem::path& file, bool replace);

}  // namespace assay::lineage
