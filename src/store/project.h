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

}  // namespace assay::store
