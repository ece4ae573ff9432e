// The project a store belongs to: table `project`, one row, written when the store is made.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace assay::store {

struct Project {
  std::string id;          // 128 random bits, as 32 hexadecimal digits
  std::string created_at;  // UTC, e.g. 2026-08-14T09:30:00Z
  std::string created_by;  // version of the program that made the store
  std::string root;        // the project directory at that time; it may have moved since
};

base::Result<void> insert_project(Database& database, const std::filesystem::path& root,
                                  const std::string& program_version);
base::Result<Project> read_project(Database& database);

// For a project that was moved or copied: rewrites recorded paths below `from`, so that files are
// found where they are now, also in commands and environments (base/path_map.h), so that a repeated
// stage works here and not on the original. Uses its own transaction; both paths are absolute,
// without a trailing slash.
base::Result<void> relocate(Database& database, const std::string& from, const std::string& to);

}  // namespace assay::store
