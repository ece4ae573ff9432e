// The run that this process is part of. `assay run` passes it to the command in an environment
// variable, so that a program that measures itself (the trainer) adds its metrics to that run.
#pragma once

#include <optional>
#include <string>

#include "base/process/environment.h"
#include "store/location.h"

namespace assay::store {

struct ThisRun {
  Location location;
  std::string uid;
};

// Nothing if the process was not started by `assay run`.
std::optional<ThisRun> this_run();

// Sets the variable for a command, replacing that of an enclosing run.
void set_run_variable(const ThisRun& run, base::Environment& environment);

}  // namespace assay::store
