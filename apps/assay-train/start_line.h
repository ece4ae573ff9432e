// Shows the progress of start-up on a terminal, until there are steps to show.
#pragma once

#include "cli/verb.h"
#include "train/start_up.h"

namespace assay::cli {

// Starts counting at the start of this process.
train::StartUp begin_start(const Session& session);

// Call before anything else is printed.
void clear_start_line();

}  // namespace assay::cli
