// Runs as words in a table: for log, show, status, pop and gc.
#pragma once

#include <string>

#include "store/run.h"

namespace assay::cli {

// "2", "2 (old)" when a later run took the stage over, or "".
std::string stage_text(const store::RunRecord& run);
// "done", "failed: 2", "failed: signal 9", "running", "interrupted"
std::string outcome_text(const store::RunRecord& run);
// "1.50 s"; "" while it is running; of an interrupted run "at least 1.50 s", until the last event
// in its log, or "unknown".
std::string took_text(const store::RunRecord& run);
// Name and labels before the command, the command short enough for a table.
std::string log_command(const store::RunRecord& run);

}  // namespace assay::cli
