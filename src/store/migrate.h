// Migrates a database to this program's schema, or refuses to. Called by Store on every open.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "store/database.h"
#include "store/migrations.h"

namespace assay::store {

// "Assy" in the file's header (PRAGMA application_id) identifies a store.
inline constexpr std::int64_t kApplicationId = 0x41737379;

struct Schema {
  std::int64_t application_id = 0;
  std::int64_t version = 0;
  bool empty = true;  // no tables
};

// Nothing has been written to it.
inline bool is_new(const Schema& schema) {
  return schema.application_id == 0 && schema.version == 0 && schema.empty;
}

base::Result<Schema> read_schema(Database& database);

// An Error when the file is not a store, is damaged, or has a newer schema than the program.
base::Result<void> check_schema(Database& database, const Schema& schema,
                                const StoreProgram& program);

// Applies all missing migrations in one transaction, so a failure or kill leaves the old schema
// intact. A store that is not new is first copied to assay.db.v<old version>. Any number of
// processes may call this at once; one of them does the work. Foreign keys must be off, because
// tables may be rebuilt; they are checked before the commit.
// Returns the version it found. An Error while an older program is recording a run: a migration
// could rename the tables that it will write to.
base::Result<std::int64_t> migrate(Database& database, const StoreProgram& program,
                                   const std::filesystem::path& project_root);

}  // namespace assay::store
