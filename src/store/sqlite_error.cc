#include "store/sqlite_error.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_size_limit.h"

namespace assay::store {
namespace {

std::string damaged_hint(std::string_view path) {
  return fmt::format(
      "move it away, then restore a backup or salvage it with: sqlite3 '{}' .recover", path);
}

// When the shared file of the write-ahead log cannot grow, SQLite reports an I/O error, but the
// reason is the same as for SQLITE_FULL.
bool cannot_grow(int code) {
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE ||
         code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_WRITE ||
         code == SQLITE_IOERR_TRUNCATE;
}

// Whether one of the database's files is as large as this process may make it. SQLite writes at
// most this much at once.
bool is_limited(const std::string& path) {
  constexpr std::uint64_t kMostAtOnce = 64 << 10;
  const auto limit = base::file_size_limit();
  if (!limit) return false;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path + suffix, missing);
    if ((missing ? 0 : size) + kMostAtOnce > *limit) return true;
  }
  return false;
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
  if (cannot_grow(code) && is_limited(path)) {
    return base::unfit_error(std::move(path), "cannot grow: " + base::file_size_limit_text(),
                             "raise it: ulimit -f unlimited");
  }
  const bool full = primary_code == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE;
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
