// The schema as a list of migrations: migrations/0001_project.sql, 0002_….sql, compiled into the
// program. The version of a schema is the number of migrations applied (PRAGMA user_version).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded_file.h"
#include "base/result.h"
#include "base/version.h"

namespace assay::store {

struct Migration {
  int version = 0;        // 1, 2, 3, …
  std::string_view name;  // "0001_project"
  std::string_view sql;
};

// Files named NNNN_name.sql, numbered from 1 without gaps; anything else is an error.
base::Result<std::vector<Migration>> parse_migrations(std::span<const base::EmbeddedFile> files);

// The migrations compiled into this program.
std::span<const Migration> embedded_migrations();

// The program that opens a store: its version, which is recorded, and the migrations it knows.
// Tests pass their own migrations.
struct StoreProgram {
  std::string version{base::version().release};
  std::span<const Migration> migrations = embedded_migrations();
};

}  // namespace assay::store
