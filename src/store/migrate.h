// Migrates a database to the program's schema, or refuses it. Called by Store on every open.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "store/database.h"
#include "store/migrations.h"

namespace assay::store {

// In the file's header (PRAGMA application_id), so that a store is recognised: "Assy".
inline constexpr std::int64_t kApplicationId = 0x41737379;

struct Schema {
  std::int64_t application_id = 0;
  std::int64_t version = 0;
  bool empty = true;  // no tables
};

base::Result<Schema> read_schema(Database& database);

// An Error when the file is not a store, or is damaged, or is newer than the program.
base::Result<void> check_schema(Database& database, const Schema& schema, const Program& program);

// Applies every migration that is missing, all in one transaction: after a failure or a kill the
// old schema is there, whole. A store that is not new is first copied to assay.db.v<old version>.
// Any number of processes may do this at once; one of them does the work. Foreign keys must be off:
// rebuilding a table needs it, and they are checked before the commit.
// Returns the version it found. An Error while an older program records a run into the store: its
// tables may be renamed, and it could not write what it recorded.
base::Result<std::int64_t> migrate(Database& database, const Program& program,
                                   const std::filesystem::path& project_root);

}  // namespace assay::store
