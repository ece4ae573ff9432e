// What a start is doing, on a terminal, until there are steps to show.
#pragma once

#include "cli/verb.h"
#include "train/start_up.h"

namespace assay::cli {

// Of this process, from when it was started on.
train::StartUp begin_start(const Session& session);

// Before something else is printed.
void clear_start_line();

}  // namespace assay::cli
