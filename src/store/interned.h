// Interned: what many rows share is stored once and referred to by number: paths, contents and
// packages. One of these lives as long as the transaction that writes a job.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "hash/digest.h"
#include "store/database.h"
#include "store/job.h"

namespace assay::store {

// The numbers of one table's rows: finds a row, or makes it.
class Interned {
 public:
  // `insert` must do nothing when the row is there; `select` finds it. Both take the same values,
  // and `select` may ignore the last ones.
  static base::Result<Interned> prepare(Database& database, std::string_view insert,
                                        std::string_view select);

  template <class... Values>
  base::Result<std::int64_t> id(const Values&... values) {
    // New rows come in runs, and so do known ones: what the last one was is tried first.
    for (int attempt = 0; attempt < 2; ++attempt) {
      Statement& statement = expect_new_ ? insert_ : select_;
      ASSAY_TRY_VOID(statement.bind(values...));
      ASSAY_TRY(const std::int64_t found, expect_new_ ? inserted() : selected());
      if (found != 0) return found;
      expect_new_ = !expect_new_;
    }
    return base::fail(unstable());
  }

 private:
  Interned(Database& database, Statement insert, Statement select)
      : database_(&database), insert_(std::move(insert)), select_(std::move(select)) {}
  // The row's number, or 0.
  base::Result<std::int64_t> inserted();
  base::Result<std::int64_t> selected();
  [[nodiscard]] base::Error unstable() const;

  Database* database_;
  Statement insert_;
  Statement select_;
  bool expect_new_ = true;
};

base::Result<Interned> interned_paths(Database& database);      // id(text)
base::Result<Interned> interned_artifacts(Database& database);  // id(digest bytes, size)
base::Result<Interned> interned_packages(Database& database);   // id(manager, name, version)

}  // namespace assay::store
