// What a run depended on: the files it read, and those it modified (appended to, changed in place),
// because their earlier content is part of the result.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// The files that were its standard input, output and error, from RunRecord::redirects.
std::set<std::string> stream_paths(const std::vector<std::string>& redirects);
std::set<std::string> stream_paths(const RunRecord& run);

// Log files: files that a run writes only through standard output or error and does not read, if it
// also leaves other files. Their earlier content is not a dependency, and later writes to them make
// nothing stale.
std::set<std::string> log_paths(const RunRecord& run);
// The same of a stored run, whose lists may be long and are not read.
base::Result<std::set<std::string>> load_log_paths(Database& database, RunId run,
                                                   const std::vector<std::string>& redirects);
enum class Logs { kNo, kYes };

// Inputs, and {path, before} of outputs that were modified but not read, with size -1 (unknown).
// Taken from the lists in `run`.
std::vector<Input> dependencies_of(const RunRecord& run, Logs logs);
// Without logs, unless `artifact` is the log itself.
std::vector<Input> dependencies_for(const RunRecord& run, const std::string& artifact);
// The same, read from the store and sorted by path within each kind. Without an artifact all logs
// are included.
base::Result<std::vector<Input>> load_dependencies(
    Store& store, RunId run, const std::optional<std::string>& artifact = std::nullopt);

}  // namespace assay::store
