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
  std::string stopped;  // why it ended, as a clause; empty: unfinished, or unknown
  std::vector<std::string> preflight;
  base::Json data;  // as `assay compare --json` prints it

  // "run 3, arm B: exited with 1; its output is in …" if that ended it; else empty.
  [[nodiscard]] std::string failure() const;
  // Whether there is a complete pair, and thus something to compare.
  [[nodiscard]] bool has_pairs() const;
};

// The verdict as a cell; for an experiment that a failure ended, that there is none.
Cell verdict_cell(const ExperimentRecord& record, compare::IntervalVerdict verdict);
// Three cells: the effect in percent, as a ratio, and its interval.
std::vector<Cell> effect_cells(const compare::Experiment& experiment,
                               const compare::Comparison& comparison);

// Without a complete pair, the part says so, and shows what ran and failed so far.
PagePart experiment_part(ExperimentRecord record);

// Of an experiment or a scan that was killed before it had recorded what it is: only its folder is
// known.
PagePart part_not_begun(std::string kind, const std::string& directory);

}  // namespace assay::report
