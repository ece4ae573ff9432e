// Turns SQLite's result codes into Errors with a hint. Internal to src/store.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;

namespace assay::store {

// `code` is an SQLite result code, extended or not; `message` is SQLite's own text.
base::Error sqlite_error(std::string path, int code, std::string_view message);
// The same, with the path and the message of this connection.
base::Error sqlite_error(sqlite3* connection, int code);
// For data that SQLite accepts but this program cannot have written.
base::Error damaged_error(std::string path, std::string what);
// If SQLite rejected one of our statements, which are correct, the file is damaged: returns that
// error. Other errors are returned unchanged.
base::Error damaged_if_refused(base::Error error);

}  // namespace assay::store
