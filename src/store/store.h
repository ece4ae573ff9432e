// Store: the project's database, `.assay/assay.db`. Tables and guarantees: docs/store.md.
//
// - Opening migrates an older schema and refuses a newer one without changing the file.
// - A committed transaction survives a kill of the process at any moment.
// - Any number of processes may use one store; one writes at a time, the others wait up to 5 s.
// - One Store belongs to one thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/location.h"
#include "store/migrations.h"
#include "store/project.h"

namespace assay::store {

struct Schema;  // migrate.h

class Store {
 public:
  // Creates the store, or finishes an interrupted creation, or opens the existing one. A database
  // without tables is filled: earlier versions left one, without a mark, if they were killed.
  static base::Result<Store> create(const Location& location, const StoreProgram& program);
  // Opens a store that exists; an error when there is none. With Access::kRead, a store that cannot
  // be written is opened read-only: it is not migrated, and an older schema is refused.
  static base::Result<Store> open(const Location& location, const StoreProgram& program,
                                  Access access = Access::kWrite);
  // The store at or above `from`; created at default_location(from) if there is none. A database
  // without tables is an error, unless it is marked as being created: it has lost its content.
  static base::Result<Store> open_or_create(const std::filesystem::path& from,
                                            const StoreProgram& program);

  [[nodiscard]] const Location& location() const { return location_; }
  [[nodiscard]] const Project& project() const { return project_; }
  [[nodiscard]] int schema_version() const { return schema_version_; }
  // Whether this object created the store; true in only one of several processes that start at
  // once.
  [[nodiscard]] bool created() const { return created_; }
  [[nodiscard]] bool is_read_only() const { return database_.is_read_only(); }
  // Warnings from opening it, one line each, for the log.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Reads the whole database and fails at the first damage (PRAGMA quick_check).
  base::Result<void> check();

  // For src/store, the only module with SQL.
  [[nodiscard]] Database& database() { return database_; }

 private:
  // What to do with a database without tables that is not marked as being created.
  enum class Unmarked { kRefuse, kFill };

  Store(Location location, Database database)
      : location_(std::move(location)), database_(std::move(database)) {}
  static base::Result<Store> open_files(const Location& location, const StoreProgram& program,
                                        Access access, Unmarked unmarked);
  base::Result<void> prepare(const StoreProgram& program, Unmarked unmarked);
  base::Result<void> check_creation(Schema& schema);
  base::Result<void> prepare_to_read(const StoreProgram& program, std::int64_t version);
  // Corrects the recorded paths if the project directory was moved.
  base::Result<void> follow_the_project();
  base::Result<bool> choose_journal();
  void note(std::string_view text);

  Location location_;
  Database database_;
  Project project_;
  int schema_version_ = 0;
  bool created_ = false;
  std::vector<std::string> notes_;
};

}  // namespace assay::store
