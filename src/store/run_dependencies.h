// What a run depended on: the files it read, and those it modified (appended to, changed in place),
// because their earlier content is part of the result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// Inputs, and {path, before} of outputs that were modified but not read, with size -1 (unknown).
// Taken from the lists in `run`. Logs (streams.h) do not count.
std::vector<Input> dependencies_of(const RunRecord& run);
// With the earlier content of `artifact` if it is a log of the run.
std::vector<Input> dependencies_for(const RunRecord& run, const std::string& artifact);
// The same, read from the store and sorted by path within each kind. Without an artifact all logs
// are included.
base::Result<std::vector<Input>> load_dependencies(
    Store& store, RunId run, const std::optional<std::string>& artifact = std::nullopt);

}  // namespace assay::store
