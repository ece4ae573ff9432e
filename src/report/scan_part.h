// A scan of `assay compare` with one experiment per value, as a part of a page: a table and a chart
// by value. The experiments are separate parts (experiment_part.h).
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/experiment_part.h"
#include "report/page.h"

namespace assay::report {

struct ScanRecord {
  struct Point {
    std::string name;                 // "N=1,M=2"
    std::vector<std::string> values;  // by parameter
    ExperimentRecord experiment;
  };
  std::vector<std::string> parameters;
  std::vector<Point> points;  // those that were started: at least one
  std::size_t planned = 0;    // number of all points
  compare::IntervalVerdict verdict = compare::IntervalVerdict::kInconclusive;  // the worst
  std::string directory;
  base::Json data;  // as `assay compare --json` prints it
};

PagePart scan_part(ScanRecord scan);

}  // namespace assay::report
