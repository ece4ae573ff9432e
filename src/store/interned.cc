#include "store/interned.h"

#include "store/sqlite_error.h"

namespace assay::store {

base::Result<Interned> Interned::prepare(Database& database, std::string_view insert,
                                         std::string_view select) {
  ASSAY_TRY(Statement inserting, database.prepare(insert));
  ASSAY_TRY(Statement selecting, database.prepare(select));
  return Interned(database, std::move(inserting), std::move(selecting));
}

base::Result<std::int64_t> Interned::inserted() {
  ASSAY_TRY_VOID(insert_.run());
  return database_->changes() == 0 ? 0 : database_->last_insert_rowid();
}

base::Result<std::int64_t> Interned::selected() {
  ASSAY_TRY(const bool row, select_.step());
  const std::int64_t id = row ? select_.integer(0) : 0;
  select_.reset();
  return id;
}

base::Error Interned::unstable() const {
  return damaged_error(database_->path().string(),
                       "an index of the store disagrees with its table");
}

base::Result<Interned> interned_paths(Database& database) {
  return Interned::prepare(database, "INSERT INTO path (text) VALUES (?1) ON CONFLICT DO NOTHING",
                           "SELECT id FROM path WHERE text = ?1");
}

base::Result<Interned> interned_artifacts(Database& database) {
  return Interned::prepare(
      database, "INSERT INTO artifact (blake3, size) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
      "SELECT id FROM artifact WHERE blake3 = ?1 AND ?2 IS NOT NULL");
}

base::Result<Interned> interned_packages(Database& database) {
  return Interned::prepare(
      database,
      "INSERT INTO package (manager, name, version) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
      "SELECT id FROM package WHERE manager = ?1 AND name = ?2 AND version = ?3");
}

}  // namespace assay::store
