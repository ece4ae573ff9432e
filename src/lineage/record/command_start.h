// Starting the command: what the recorder does just before and just after it, and starting it
// unobserved, because a command that cannot be recorded still runs.
#pragma once

#include <functional>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "observe/collect/keeper.h"
#include "observe/collect/process/launch.h"

namespace assay::lineage {

// Takes the stamps of the open files that the command inherits again, so that every change by the
// command changes a stamp. A file written in the current tick of the file clock could be written
// again with the same stamp, so this waits for the next tick (some 10 ms at most), but not for
// standard streams, which count as written if in doubt, and not for files opened to be appended to.
void refresh_stamps(std::vector<collect::Inherited>& files);

// Closes this process's copies of the descriptors that the command inherited, and makes the
// standard streams /dev/null: the reader of a pipe sees its end only when no process holds it open.
void release_descriptors(std::vector<int>& descriptors);

// The exit code that a shell uses for a command that could not be started.
int exit_code_of(const base::Error& not_started);

// Runs the command to its end without observing it. `started` is called once it runs. An error: it
// could not be started.
base::Result<void> run_unobserved(const collect::Launch& launch, collect::KeeperChannel& channel,
                                  const std::function<void()>& started);

}  // namespace assay::lineage
