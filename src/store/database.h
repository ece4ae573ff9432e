// Database: one connection to one SQLite file. Transaction and ReadTransaction: a write and a read
// transaction on it.
//
// - A connection belongs to one thread at a time; concurrent threads and processes each open their
//   own.
// - Statements may outlive the Database object they came from; the file closes with the last one.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/statement.h"

struct sqlite3;

namespace assay::store {

inline constexpr std::chrono::milliseconds kBusyTimeout{5000};

// kRead: the caller only needs to read, so a file that cannot be written is opened read-only.
enum class Access { kWrite, kRead };

class Database {
 public:
  // Opens an existing file. Never creates one: SQLite would create it with the umask's mode, and a
  // store must be private from the start. With kRead, a file or directory that cannot be written (a
  // read-only mount) is opened read-only.
  static base::Result<Database> open(const std::filesystem::path& path,
                                     Access access = Access::kWrite);

  // Runs any number of statements and ignores their rows.
  base::Result<void> exec(std::string_view sql);
  // Exactly one statement.
  base::Result<Statement> prepare(std::string_view sql);
  // The first column of the first row of `sql`; no row is an error.
  base::Result<std::int64_t> integer(std::string_view sql);
  base::Result<std::string> text(std::string_view sql);

  // How long a statement waits for another process's lock before it fails; initially kBusyTimeout.
  base::Result<void> set_busy_timeout(std::chrono::milliseconds timeout);
  // Switches to the write-ahead log, or back to SQLite's rollback journal, and returns whether the
  // log is in use now: on file systems that do not support it SQLite keeps the journal, which is
  // equally safe but slower.
  base::Result<bool> set_wal(bool wanted, std::chrono::milliseconds timeout = kBusyTimeout);
  // Closing will not change the database file, even if the write-ahead log has not been
  // checkpointed.
  void leave_untouched_on_close();

  // Nothing can be written through this connection.
  [[nodiscard]] bool is_read_only() const;
  [[nodiscard]] bool in_transaction() const;
  // The last call failed because another connection held its lock for too long.
  [[nodiscard]] bool was_busy() const;
  [[nodiscard]] std::int64_t last_insert_rowid() const;
  // Rows changed by the last INSERT, UPDATE or DELETE.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  friend class Transaction;

  Database(sqlite3* connection, std::filesystem::path path)
      : path_(std::move(path)), connection_(connection) {}
  base::Result<Statement> first_row(std::string_view sql);

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> connection_;
};

// Takes the write lock at once (BEGIN IMMEDIATE), so that nothing read inside can change before it
// commits; rolls back if it goes out of scope without commit(). Must not outlive the Database.
class Transaction {
 public:
  static base::Result<Transaction> begin(Database& database);
  base::Result<void> commit();

 private:
  struct Rollback {
    void operator()(sqlite3* connection) const;
  };
  friend class ReadTransaction;
  explicit Transaction(sqlite3* connection) : open_(connection) {}
  static base::Result<Transaction> begin(Database& database, std::string_view sql);

  std::unique_ptr<sqlite3, Rollback> open_;
};

// Runs `write`, which returns a Result<void>, in a transaction. False: other processes kept the
// store locked and nothing was written; try again.
template <class Write>
base::Result<bool> write_unless_busy(Database& database, const Write& write) {
  auto transaction = Transaction::begin(database);
  if (!transaction) {
    if (database.was_busy()) return false;
    return base::fail(std::move(transaction).error());
  }
  ASSAY_TRY_VOID(write());
  if (auto committed = transaction->commit(); !committed) {
    if (database.was_busy()) return false;
    return base::fail(std::move(committed).error());
  }
  return true;
}

// A read transaction: while it exists, all queries see the same state whatever other connections
// write, and each is cheaper because locks are taken once. Nothing can be written through it. Must
// not outlive the Database.
class ReadTransaction {
 public:
  static base::Result<ReadTransaction> begin(Database& database);

 private:
  explicit ReadTransaction(Transaction transaction) : open_(std::move(transaction)) {}

  Transaction open_;  // never committed
};

}  // namespace assay::store
