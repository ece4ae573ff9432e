// Results of experiments as JSON: what `assay compare --json` prints and result.json has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/compare/execute.h"
#include "base/json.h"

namespace assay::cli {

base::Json experiment_json(const ExperimentResult& result);

// An experiment per value of a scan.
struct ScanResult {
  std::vector<std::string> parameters;
  struct Point {
    std::string name;
    std::vector<std::string> values;
    std::unique_ptr<ExperimentResult> result;
  };
  std::vector<Point> points;
  std::string directory;

  // The worst of all points.
  [[nodiscard]] compare::IntervalVerdict verdict() const;
};
base::Json scan_json(const ScanResult& scan);

}  // namespace assay::cli
