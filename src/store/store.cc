#include "store/store.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "store/files.h"
#include "store/migrate.h"
#include "store/shared.h"
#include "store/sqlite_error.h"

namespace assay::store {

base::Result<Store> Store::create(const Location& location, const StoreProgram& program) {
  ASSAY_TRY_VOID(make_files(location));
  return open_files(location, program, Access::kWrite, Unmarked::kFill);
}

base::Result<Store> Store::open(const Location& location, const StoreProgram& program,
                                Access access) {
  return open_files(location, program, access, Unmarked::kRefuse);
}

base::Result<Store> Store::open_files(const Location& location, const StoreProgram& program,
                                      Access access, Unmarked unmarked) {
  ASSAY_TRY_VOID(check_file(location.database));
  ASSAY_TRY(Database database, Database::open(location.database, access));
  Store store(location, std::move(database));
  ASSAY_TRY_VOID(store.prepare(program, unmarked));
  // It has its tables now, whoever made them. With the mark, they could be lost without an error.
  std::error_code ignored;
  if (!store.is_read_only()) std::filesystem::remove(creation_mark(location), ignored);
  return store;
}

base::Result<Store> Store::open_or_create(const std::filesystem::path& from,
                                          const StoreProgram& program) {
  ASSAY_TRY(const std::optional<Location> found, find(from));
  if (!found) {
    ASSAY_TRY(const Location location, default_location(from));
    return create(location, program);
  }
  ASSAY_TRY_VOID(make_files(*found));
  return open(*found, program);
}

void Store::note(std::string_view text) {
  notes_.push_back(fmt::format("{}: {}", location_.database.string(), text));
}

base::Result<bool> Store::choose_journal() {
  ASSAY_TRY(const bool shared, is_shared_between_machines(location_.database));
  ASSAY_TRY(const bool wal, database_.set_wal(!shared));
  if (!wal) note("no write-ahead log on this file system; readers and writers wait for each other");
  return wal;
}

base::Result<void> Store::prepare(const StoreProgram& program, Unmarked unmarked) {
  // Settings of the connection; they do not touch the file. cell_size_check detects a damaged page
  // instead of reading beyond it.
  constexpr std::string_view kSettings =
      "PRAGMA foreign_keys = OFF; PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON";
  ASSAY_TRY_VOID(database_.exec(kSettings).map_error(damaged_if_refused));
  ASSAY_TRY(Schema schema, read_schema(database_).map_error(damaged_if_refused));
  if (is_new(schema) && unmarked == Unmarked::kRefuse) ASSAY_TRY_VOID(check_creation(schema));
  // Nothing is written before this check: a file that is not a store stays as it is.
  if (auto fit = check_schema(database_, schema, program); !fit) {
    database_.leave_untouched_on_close();
    return base::fail(std::move(fit).error());
  }
  if (is_read_only()) return prepare_to_read(program, schema.version);
  switch (make_private(location_.database)) {
    case Privacy::kAlreadyPrivate:
      break;
    case Privacy::kMadePrivate:
      note(fmt::format("other users could read it; its mode is {} again",
                       is_shared(location_.directory) ? "0660" : "0600"));
      break;
    case Privacy::kUnsupported:
      note("other users may be able to read it; this file system does not keep modes");
      break;
  }
  ASSAY_TRY(const bool wal, choose_journal());
  schema_version_ = static_cast<int>(program.migrations.size());
  if (schema.version < schema_version_) {
    ASSAY_TRY(const std::int64_t before, migrate(database_, program, location_.project));
    created_ = before == 0;
  }
  ASSAY_TRY_VOID(database_.exec("PRAGMA foreign_keys = ON"));
  // Migration used an fsync per commit. From here on that is not worth it: with a write-ahead log a
  // power loss costs at most the last transactions (docs/store.md). The log is copied to the
  // database when it is 32 MiB long, not 4 as by default, which a run with twenty thousand files
  // would reach each time: its user would wait for the copy and three fsyncs.
  if (wal) {
    ASSAY_TRY_VOID(database_.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8192"));
  }
  ASSAY_TRY(project_, read_project(database_).map_error(damaged_if_refused));
  return follow_the_project();
}

base::Result<void> Store::check_creation(Schema& schema) {
  std::error_code ignored;
  if (std::filesystem::exists(creation_mark(location_), ignored)) return {};
  // Another process may have finished creating it since the schema was read.
  ASSAY_TRY(schema, read_schema(database_).map_error(damaged_if_refused));
  if (!is_new(schema)) return {};
  database_.leave_untouched_on_close();
  return base::fail(base::unfit_error(
      location_.database.string(), "the store is empty: what was recorded in it is lost",
      "restore a copy of it, or begin a new one in its place: assay init"));
}

base::Result<void> Store::prepare_to_read(const StoreProgram& program, std::int64_t version) {
  schema_version_ = static_cast<int>(program.migrations.size());
  if (version < schema_version_) {
    return base::fail(base::unfit_error(
        location_.database.string(),
        fmt::format("the store has schema version {} and must be brought to {} first, which needs "
                    "to write to it",
                    version, schema_version_),
        "make the file and its directory writable for you, or copy .assay to where they are"));
  }
  ASSAY_TRY(project_, read_project(database_).map_error(damaged_if_refused));
  if (project_.root != location_.project.string()) {
    note(
        fmt::format("the project has moved from {}, but the recorded paths still point there: the "
                    "store cannot be written",
                    project_.root));
  }
  return {};
}

base::Result<void> Store::follow_the_project() {
  const std::string here = location_.project.string();
  // Only migrations that know runs have paths to change.
  ASSAY_TRY(const std::int64_t knows_runs,
            database_.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'run_output'"));
  if (project_.root == here || knows_runs == 0) return {};
  if (const auto moved = relocate(database_, project_.root, here); !moved) {
    note(fmt::format("the project has moved from {}, but the recorded paths still point there: {}",
                     project_.root, moved.error().what));
    return {};
  }
  project_.root = here;
  return {};
}

base::Result<void> Store::check() {
  ASSAY_TRY(const std::string verdict, database_.text("PRAGMA quick_check(1)"));
  if (verdict == "ok") return {};
  return base::fail(
      damaged_error(location_.database.string(), fmt::format("the store is damaged: {}", verdict)));
}

}  // namespace assay::store
