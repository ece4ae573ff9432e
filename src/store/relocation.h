// A project that was moved or copied: recorded paths inside it are made to say where it is now, so
// that everything is found by path as before. Commands stay as they were given.
#pragma once

#include <string>

#include "base/result.h"
#include "store/database.h"

namespace assay::store {

// In a transaction of its own. Both are absolute, without a trailing slash.
base::Result<void> relocate(Database& database, const std::string& from, const std::string& to);

}  // namespace assay::store
