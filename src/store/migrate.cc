#include "store/migrate.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "base/clock.h"
#include "store/files.h"
#include "store/project.h"
#include "store/run_reader.h"
#include "store/sqlite_error.h"

namespace assay::store {
namespace {

// The version to install, for the error message; a future schema may not have the table.
std::string last_writer(Database& database) {
  const auto program = database.text("SELECT program FROM migration ORDER BY version DESC LIMIT 1");
  return program ? fmt::format(" (written by assay {})", *program) : "";
}

// Called with the write lock held, so that the schema does not change while it is copied. The copy
// is read through a separate connection because VACUUM cannot run inside a transaction.
base::Result<void> back_up(const Database& database, std::int64_t version) {
  const std::filesystem::path copy = fmt::format("{}.v{}", database.path().string(), version);
  const std::filesystem::path partial = copy.string() + ".partial";
  std::error_code error;
  std::filesystem::remove(partial, error);  // left by a kill
  ASSAY_TRY_VOID(make_private_file(partial));
  ASSAY_TRY(Database reader, Database::open(database.path()));
  ASSAY_TRY(Statement vacuum, reader.prepare("VACUUM INTO ?1"));
  ASSAY_TRY_VOID(vacuum.bind(partial.native()));
  ASSAY_TRY_VOID(vacuum.run());
  ASSAY_TRY_VOID(sync_file(partial));
  std::filesystem::rename(partial, copy, error);
  if (error) {
    return base::fail(base::system_error(copy.string(), "cannot keep a backup", error.value()));
  }
  return {};
}

base::Result<void> apply(Database& database, const Migration& migration,
                         const StoreProgram& program) {
  ASSAY_TRY_VOID(database.exec(migration.sql));
  if (!database.in_transaction()) {
    return base::fail(base::failed_error(database.path().string(), "it ends its own transaction"));
  }
  ASSAY_TRY_VOID(database.exec(fmt::format("PRAGMA user_version = {}", migration.version)));
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT INTO migration (version, name, applied_at, program)"
                             " VALUES (?1, ?2, ?3, ?4)"));
  const std::string now = base::utc_text(base::system_clock().wall_ns());
  ASSAY_TRY_VOID(insert.bind(migration.version, migration.name, now, program.version));
  return insert.run();
}

// Migrations run with foreign keys off, as rebuilding a table needs; they are checked here.
base::Result<void> check_foreign_keys(Database& database) {
  ASSAY_TRY(Statement check, database.prepare("PRAGMA foreign_key_check"));
  ASSAY_TRY(const bool violation, check.next_row());
  if (!violation) return {};
  return base::fail(
      base::failed_error(database.path().string(),
                         fmt::format("a row of table {} would refer to nothing", check.text(0))));
}

// Called with the write lock held, which a starting run must take, so none can be missed.
// Collectors on other machines that share the file system are not detected.
base::Result<void> check_for_recording_programs(Database& database) {
  ASSAY_TRY(Statement tables,  // "job" before version 8
            database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN"
                             " ('run', 'job')"));
  ASSAY_TRY(const bool has_runs, tables.next_row());
  if (!has_runs) return {};
  ASSAY_TRY(Statement running,
            database.prepare(fmt::format("SELECT id, collector_pid, collector_start_ticks FROM {}"
                                         " WHERE status = 'running' ORDER BY id",
                                         tables.text(0))));
  for (;;) {
    ASSAY_TRY(const bool row, running.next_row());
    if (!row) return {};
    if (!is_alive(running.integer(1), running.integer(2))) continue;
    return base::fail(base::unfit_error(
        database.path().string(),
        fmt::format(
            "run {} is being recorded by an older assay (process {}), which could not write "
            "to the store after its upgrade",
            running.integer(0), running.integer(1)),
        "wait until the run has ended, or use the older assay until then"));
  }
}

// Inside the caller's transaction.
base::Result<void> apply_missing(Database& database, const StoreProgram& program,
                                 const Schema& schema, const std::filesystem::path& project_root) {
  const bool is_new = schema.version == 0;
  if (is_new) {
    ASSAY_TRY_VOID(database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  } else {
    ASSAY_TRY_VOID(check_for_recording_programs(database));
    ASSAY_TRY_VOID(back_up(database, schema.version));
  }
  for (const Migration& migration :
       program.migrations.subspan(static_cast<std::size_t>(schema.version))) {
    auto applied = apply(database, migration, program);
    if (!applied) {
      base::Error error = std::move(applied).error();
      error.what = fmt::format("cannot apply migration {}: {}", migration.name, error.what);
      if (error.hint.empty()) error.hint = "the store is unchanged; please report this line";
      return base::fail(std::move(error));
    }
  }
  if (is_new) ASSAY_TRY_VOID(insert_project(database, project_root, program.version));
  return check_foreign_keys(database);
}

}  // namespace

base::Result<Schema> read_schema(Database& database) {
  // One statement, so that all three are read at the same time.
  ASSAY_TRY(Statement select, database.prepare("SELECT application_id, user_version,"
                                               " (SELECT count(*) FROM sqlite_schema)"
                                               " FROM pragma_application_id, pragma_user_version"));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) return base::fail(damaged_error(database.path().string(), "its header has no version"));
  return Schema{select.integer(0), select.integer(1), select.integer(2) == 0};
}

base::Result<void> check_schema(Database& database, const Schema& schema,
                                const StoreProgram& program) {
  const std::string path = database.path().string();
  if (is_new(schema)) return {};
  if (schema.application_id != kApplicationId) {
    return base::fail(base::unfit_error(path, "is an SQLite database but not an Assay store",
                                        "move it away and run: assay init"));
  }
  if (schema.version <= 0 || schema.empty) {
    return base::fail(damaged_error(
        path, fmt::format("the store is damaged: schema version {}", schema.version)));
  }
  const auto known = static_cast<std::int64_t>(program.migrations.size());
  if (schema.version > known) {
    return base::fail(base::unfit_error(
        path,
        fmt::format("the store has schema version {}{}, and this program (assay {}) knows {}",
                    schema.version, last_writer(database), program.version, known),
        "upgrade assay"));
  }
  return {};
}

base::Result<std::int64_t> migrate(Database& database, const StoreProgram& program,
                                   const std::filesystem::path& project_root) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  // Read again now that the lock is held: another process may have migrated it.
  ASSAY_TRY(const Schema schema, read_schema(database));
  ASSAY_TRY_VOID(check_schema(database, schema, program));
  if (schema.version < static_cast<std::int64_t>(program.migrations.size())) {
    ASSAY_TRY_VOID(apply_missing(database, program, schema, project_root));
  }
  ASSAY_TRY_VOID(transaction.commit());
  return schema.version;
}

}  // namespace assay::store
