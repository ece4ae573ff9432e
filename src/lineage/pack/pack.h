// `assay pack`: one file with everything needed to make an artifact again on another machine: the
// runs, the contents they need, the diff of their source, their environment (redacted when it was
// recorded) and packages.
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

// The file appears whole or not at all, and replaces an existing one only if `replace`. It is
// compressed unless its name ends in ".tar". An error when a needed content is neither on disk nor
// archived. Files that by name or content hold secrets are left out and listed.
base::Result<PackReport> pack(store::Store& store, const RunOrArtifact& what,
                              const std::filesystem::path& file, bool replace);

}  // namespace assay::lineage
