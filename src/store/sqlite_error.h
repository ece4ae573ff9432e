// Turns SQLite's result codes into Errors that say what to do. Only this room's .cc files use it.
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
// For what SQLite itself would not call corrupt but cannot have been written by us.
base::Error damaged_error(std::string path, std::string what);
// For a statement of ours that cannot be wrong and failed: then the file is. Other errors pass.
base::Error damaged_if_refused(base::Error error);

}  // namespace assay::store
