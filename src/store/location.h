// Where a project's store is: `.assay/assay.db`, found upward from the working directory as git
// finds `.git`. Every verb that uses the store starts here; store.h opens the store that was found.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"

namespace assay::store {

struct Location {
  std::filesystem::path project;    // the directory that holds `.assay`; absolute
  std::filesystem::path directory;  // PROJECT/.assay
  std::filesystem::path database;   // PROJECT/.assay/assay.db
};

// The store of exactly this project directory, whether or not it exists.
Location location_in(const std::filesystem::path& project);

// The nearest `.assay` at or above `from`; nothing when there is none up to the root. A `.assay`
// that is not a directory is an error, because skipping it would use another project's store.
base::Result<std::optional<Location>> find(const std::filesystem::path& from);

// Where a new store is created: beside the nearest `.git` at or above `from`, so that all
// directories of a checkout share one store; else in `from` itself.
base::Result<Location> default_location(const std::filesystem::path& from);

}  // namespace assay::store
