// Reading runs: lists for `assay log`, one complete run for `assay show` and exports, and the run
// that a name on the command line refers to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

struct RunFilter {
  std::int64_t limit = -1;  // all
  bool superseded = true;   // false: leave those out
  std::optional<RunStatus> status = std::nullopt;
};

// Newest first, without context and lists.
base::Result<std::vector<RunRecord>> list_runs(Store& store, const RunFilter& filter = {});

// Everything, in memory. For runs with a million files, use head_of() and the each_… functions.
base::Result<RunRecord> load_run(Store& store, RunId id);
// Without lists; with git, environment and machine if `context` is kYes.
enum class WithContext { kNo, kYes };
base::Result<RunRecord> head_of(Store& store, RunId id, WithContext context = WithContext::kNo);

// Files that it wrote only as its standard output or error, and that are not outputs (streams.h).
base::Result<std::vector<Output>> streams_of(Store& store, RunId id);

// Why the run is not complete.
base::Result<std::vector<Missed>> missed_of(Store& store, RunId id);

// One call per file, sorted by path; a limit of -1 means all. Outputs are without logs (streams.h).
base::Result<void> each_input(Store& store, RunId id, std::int64_t limit,
                              const std::function<void(Input)>& visit);
base::Result<void> each_output(Store& store, RunId id, std::int64_t limit,
                               const std::function<void(Output)>& visit);

// "last", a number, "@N" (the current run of stage N), a label, a --name (the newest so named), or
// the first digits of a uid, in this order. Nothing when it is none of these; a prefix that several
// uids share is a usage error.
base::Result<std::optional<RunId>> find_run(Store& store, std::string_view text);

// Runs whose status is kRunning although their collector has exited: it was killed, or the machine
// was restarted.
base::Result<std::vector<RunRecord>> stale_running_runs(Store& store);
// Whether the process with this pid is the one that started then (/proc/PID/stat, field 22).
bool is_alive(std::int64_t pid, std::int64_t start_ticks);

// Internal to src/store: all rows of a statement that selects kRunColumns.
base::Result<std::vector<RunRecord>> runs_of(Statement& select);

}  // namespace assay::store
