// The differences between two runs: `assay diff`. Pure.
#pragma once

#include <map>
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

// What a run reported about itself (store/metrics.h), by name, as text.
struct ReportedValues {
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::string> metrics;  // the last value of each
};
std::vector<RunDifference> reported_diff(const ReportedValues& before, const ReportedValues& after);

// Both runs fully loaded. Files are compared by path and content, the rest by value; times, pids
// and durations always differ and are left out.
std::vector<RunDifference> run_diff(const store::RunRecord& before, const store::RunRecord& after);

}  // namespace assay::lineage
