// Store: a project's memory, `.assay/assay.db`. Every verb that remembers or asks opens one; the
// tables and the guarantees are in docs/store.md.
//
// - Opening brings an older schema forward and refuses a newer one without changing the file.
// - A transaction that was committed is there after the process is killed at any moment.
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
#include "store/migration.h"
#include "store/project.h"

namespace assay::store {

class Store {
 public:
  // Makes the store, or finishes one whose making was interrupted, or opens the one that is there.
  static base::Result<Store> create(const Location& location, const Program& program);
  // Opens a store that exists; when there is none, the error names `assay init`.
  // With Access::kRead, one that cannot be written is read: then nothing is brought forward, and an
  // older schema is refused.
  static base::Result<Store> open(const Location& location, const Program& program,
                                  Access access = Access::kWrite);
  // The store at or above `from`; made at default_location(from) when there is none.
  static base::Result<Store> open_or_create(const std::filesystem::path& from,
                                            const Program& program);

  [[nodiscard]] const Location& location() const { return location_; }
  [[nodiscard]] const Project& project() const { return project_; }
  [[nodiscard]] int schema_version() const { return schema_version_; }
  // Whether this opening made it; of several processes that start at once, one.
  [[nodiscard]] bool created() const { return created_; }
  [[nodiscard]] bool is_read_only() const { return database_.is_read_only(); }
  // What was unusual on opening and did not stop it, one line each, for the log.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Reads the whole database and fails on the first thing that is damaged (PRAGMA quick_check).
  base::Result<void> check();

  // For the code of this room that reads and writes tables. Other rooms use that code.
  [[nodiscard]] Database& database() { return database_; }

 private:
  Store(Location location, Database database)
      : location_(std::move(location)), database_(std::move(database)) {}
  base::Result<void> prepare(const Program& program);
  base::Result<void> prepare_to_read(const Program& program, std::int64_t version);
  // Makes the recorded paths right if the project is elsewhere than it was.
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
