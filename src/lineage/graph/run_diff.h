// The differences between two runs: `assay diff`. Pure.
#pragma once

#include <string>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

struct RunDifference {
  std::string section;  // "command", "outcome", "input", "output", "package", …
  std::string what;     // which one: a path, a package, a variable, a key
  std::string before;   // empty: absent
  std::string after;
};

// Both runs fully loaded. Files are compared by path and content, the rest by value; times, pids
// and durations always differ and are left out.
std::vector<RunDifference> run_diff(const store::RunRecord& before, const store::RunRecord& after);

}  // namespace assay::lineage
