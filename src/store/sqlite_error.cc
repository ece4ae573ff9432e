#include "store/sqlite_error.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

namespace assay::store {
namespace {

std::string damaged_hint(std::string_view path) {
  return fmt::format(
      "move it away, then restore a backup or salvage it with: sqlite3 '{}' .recover", path);
}

// When the shared file of the write-ahead log cannot grow, SQLite reports an I/O error, but the
// reason is a full disk.
bool is_full(int code) {
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE;
}

std::string hint_for(int primary_code, std::string_view path) {
  switch (primary_code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format("another process is writing; try again, or find it with: fuser -v '{}'",
                         path);
    case SQLITE_READONLY:
      return "make the file and its directory writable for you";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damaged_hint(path);
    case SQLITE_FULL:
      return "free some space on this file system and run it again";
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return "check that the file exists, that you may read it, and write to its directory";
    case SQLITE_IOERR:
      return "check the disk and the quota; what was committed before is kept";
    default:
      return {};
  }
}

// Wrong SQL or wrong use of SQLite; everything else is about the machine.
bool is_programming_error(int primary_code) {
  switch (primary_code) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
      return true;
    default:
      return false;
  }
}

}  // namespace

base::Error sqlite_error(std::string path, int code, std::string_view message) {
  const int primary_code = code & 0xff;
  const bool full = is_full(code);
  std::string what = fmt::format("{} (SQLite code {})", full ? "the disk is full" : message, code);
  std::string hint = hint_for(full ? SQLITE_FULL : primary_code, path);
  return is_programming_error(primary_code)
             ? base::failed_error(std::move(path), std::move(what), std::move(hint))
             : base::unfit_error(std::move(path), std::move(what), std::move(hint));
}

base::Error sqlite_error(sqlite3* connection, int code) {
  const char* path = sqlite3_db_filename(connection, "main");
  return sqlite_error(path != nullptr ? path : "", code, sqlite3_errmsg(connection));
}

base::Error damaged_error(std::string path, std::string what) {
  std::string hint = damaged_hint(path);
  return base::unfit_error(std::move(path), std::move(what), std::move(hint));
}

base::Error damaged_if_refused(base::Error error) {
  if (error.code != base::ExitCode::kNo) return error;
  return damaged_error(std::move(error.where), "the store is damaged: " + error.what);
}

}  // namespace assay::store
