// What a run depended on: the files it read, and those it wrote into (appended to, changed in
// place), whose earlier content is part of what it left.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// The files it got as standard input, output and error.
std::set<std::string> stream_paths(const RunRecord& run);

// Log files: written only through standard output or error, and not read, by a run that leaves
// other files too. Their earlier content is no dependency, and later writes to them make nothing
// stale.
std::set<std::string> log_paths(const RunRecord& run);
enum class Logs { kNo, kYes };

// Inputs, and {path, before} of the outputs that were written into and not read. The sizes of the
// latter are not known: -1. From the lists in `run`.
std::vector<Input> dependencies_of(const RunRecord& run, Logs logs);
// Without logs, except that the earlier content of a log counts if the log is the artifact that is
// asked about.
std::vector<Input> dependencies_for(const RunRecord& run, const std::string& artifact);
// The same from the store; sorted by path within each kind. Without an artifact: with all logs.
base::Result<std::vector<Input>> load_dependencies(
    Store& store, RunId run, const std::optional<std::string>& artifact = std::nullopt);

}  // namespace assay::store
