// An experiment of `assay compare` as a part of a page.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "compare/findings.h"
#include "compare/journal.h"
#include "report/page.h"

namespace assay::report {

struct ExperimentRecord {
  const compare::Measured& measured;
  const compare::Findings& findings;
  std::string directory;
  std::string stopped;  // why it ended, as a clause; empty: it did not end, or that is unknown
  std::vector<std::string> preflight;
  base::Json data;  // as `assay compare --json` prints it

  // Whether there is a finished pair, and so something to compare.
  [[nodiscard]] bool has_pairs() const;
};

// Without a finished pair, the part says so, and what ran and failed so far.
Part experiment_part(ExperimentRecord record);

}  // namespace assay::report
