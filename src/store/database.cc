#include "store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "store/sqlite_error.h"

namespace assay::store {

void Database::Close::operator()(sqlite3* connection) const {
  sqlite3_close_v2(connection);
}

namespace {

bool is_writable(const std::filesystem::path& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// To read a database with a write-ahead log, SQLite needs a shared-memory file beside it, which it
// cannot create in a read-only directory. If there is no log, the database can be opened as
// immutable, which does not need that file.
std::string read_only_name(const std::filesystem::path& database) {
  std::string name = "file:";
  for (const char c : database.native()) {
    const bool special = c == '%' || c == '?' || c == '#';
    name += special ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  std::error_code none;
  const auto log_size = std::filesystem::file_size(database.native() + "-wal", none);
  return name + (none || log_size == 0 ? "?immutable=1" : "?mode=ro");
}

}  // namespace

base::Result<Database> Database::open(const std::filesystem::path& path, Access access) {
  // Turns off SQLite's memory statistics, which take a lock at every allocation.
  static const int counting_off = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(counting_off);
  // Absolute, because SQLite may be built to read a name that starts with "file:" as a URI.
  std::error_code no_working_directory;
  std::filesystem::path absolute = std::filesystem::absolute(path, no_working_directory);
  if (no_working_directory) {
    return base::fail(base::system_error(path.string(), "cannot resolve this path",
                                         no_working_directory.value()));
  }
  sqlite3* connection = nullptr;
  const bool reads =
      access == Access::kRead && !(is_writable(absolute) && is_writable(absolute.parent_path()));
  const int flags = (reads ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const std::string name = reads ? read_only_name(absolute) : absolute.native();
  const int code = sqlite3_open_v2(name.c_str(), &connection, flags, nullptr);
  Database database(connection, std::move(absolute));  // a failed open has to be closed too
  if (code != SQLITE_OK) {
    const char* message = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    return base::fail(sqlite_error(database.path_.string(), code, message));
  }
  // SQLite falls back to read-only when it may not write; fail now, not at the first write.
  if (!reads && database.is_read_only()) {
    return base::fail(
        sqlite_error(database.path_.string(), SQLITE_READONLY, sqlite3_errstr(SQLITE_READONLY)));
  }
  // A store may come with a checkout from elsewhere: its schema is not trusted.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  ASSAY_TRY_VOID(database.set_busy_timeout(kBusyTimeout));
  return database;
}

base::Result<void> Database::exec(std::string_view sql) {
  const int code =
      sqlite3_exec(connection_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return base::fail(sqlite_error(connection_.get(), code));
  return {};
}

base::Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const std::string terminated(sql);
  const int code =
      sqlite3_prepare_v3(connection_.get(), terminated.c_str(), -1, 0, &statement, &rest);
  if (code != SQLITE_OK) return base::fail(sqlite_error(connection_.get(), code));
  Statement owned(statement);
  ASSAY_CHECK(statement != nullptr && base::trim(rest).empty(), "prepare() takes one statement");
  return owned;
}

base::Result<Statement> Database::first_row(std::string_view sql) {
  ASSAY_TRY(Statement statement, prepare(sql));
  ASSAY_TRY(const bool row, statement.next_row());
  if (!row) return base::fail(base::failed_error(path_.string(), fmt::format("no row: {}", sql)));
  return statement;
}

base::Result<std::int64_t> Database::integer(std::string_view sql) {
  ASSAY_TRY(const Statement statement, first_row(sql));
  return statement.integer(0);
}

base::Result<std::string> Database::text(std::string_view sql) {
  ASSAY_TRY(const Statement statement, first_row(sql));
  return statement.text(0);
}

base::Result<void> Database::set_busy_timeout(std::chrono::milliseconds timeout) {
  const int code = sqlite3_busy_timeout(connection_.get(), static_cast<int>(timeout.count()));
  if (code != SQLITE_OK) return base::fail(sqlite_error(connection_.get(), code));
  return {};
}

base::Result<bool> Database::set_wal(bool wanted, std::chrono::milliseconds timeout) {
  // SQLite does not wait for locks while it changes the journal mode, so the waiting is here.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    ASSAY_TRY(const std::string current, text("PRAGMA journal_mode"));
    if ((current == "wal") == wanted) return wanted;
    auto mode = text(wanted ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
    if (mode) return *mode == "wal";
    if (!was_busy() || std::chrono::steady_clock::now() >= deadline) {
      return base::fail(std::move(mode).error());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Database::leave_untouched_on_close() {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

bool Database::is_read_only() const {
  return sqlite3_db_readonly(connection_.get(), "main") == 1;
}

bool Database::in_transaction() const {
  return sqlite3_get_autocommit(connection_.get()) == 0;
}

bool Database::was_busy() const {
  return (sqlite3_errcode(connection_.get()) & 0xff) == SQLITE_BUSY;
}

std::int64_t Database::last_insert_rowid() const {
  return sqlite3_last_insert_rowid(connection_.get());
}

std::int64_t Database::changes() const {
  return sqlite3_changes64(connection_.get());
}

void Transaction::Rollback::operator()(sqlite3* connection) const {
  // SQLite has already rolled back by itself after some errors (disk full, I/O).
  if (sqlite3_get_autocommit(connection) != 0) return;
  sqlite3_exec(connection, "ROLLBACK", nullptr, nullptr, nullptr);
}

base::Result<Transaction> Transaction::begin(Database& database, std::string_view sql) {
  ASSAY_CHECK(!database.in_transaction(), "transactions do not nest");
  ASSAY_TRY_VOID(database.exec(sql));
  return Transaction(database.connection_.get());
}

base::Result<Transaction> Transaction::begin(Database& database) {
  return begin(database, "BEGIN IMMEDIATE");
}

base::Result<ReadTransaction> ReadTransaction::begin(Database& database) {
  ASSAY_TRY(Transaction transaction, Transaction::begin(database, "BEGIN DEFERRED"));
  return ReadTransaction(std::move(transaction));
}

base::Result<void> Transaction::commit() {
  ASSAY_CHECK(open_ != nullptr, "a transaction is committed once");
  const int code = sqlite3_exec(open_.get(), "COMMIT", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return base::fail(sqlite_error(open_.get(), code));
  static_cast<void>(open_.release());
  return {};
}

}  // namespace assay::store
