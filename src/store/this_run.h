// The run that this process is part of: `assay run` tells the command in its environment, so that a
// program that measures itself can write what it measured beside what was seen of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/location.h"

namespace assay::store {

struct ThisRun {
  Location location;
  std::string uid;
};

// Nothing when the process is run by itself.
std::optional<ThisRun> this_run();

// Puts it into the environment ("KEY=value") of a command, in place of a run around this one.
void tell_run(const ThisRun& run, std::vector<std::string>& environment);

}  // namespace assay::store
