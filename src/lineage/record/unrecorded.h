// A command that cannot be recorded still runs.
#pragma once

#include <functional>

#include "base/error.h"
#include "base/result.h"
#include "observe/collect/keeper.h"
#include "observe/collect/process/launch.h"

namespace assay::lineage {

// The exit code that a shell uses for a command that could not be started.
int exit_code_of(const base::Error& not_started);

// Runs the command to its end without observing it. `started` is called once it runs. An error: it
// could not be started.
base::Result<void> run_unobserved(const collect::Launch& launch, collect::KeeperChannel& channel,
                                  const std::function<void()>& started);

}  // namespace assay::lineage
