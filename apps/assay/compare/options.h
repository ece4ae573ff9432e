// The options of `assay compare`, and the experiment that they describe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/experiment.h"
#include "compare/scan.h"

namespace assay::cli {

struct CompareOptions {
  std::string a;
  std::string b;
  std::vector<std::string> arms;  // NAME=COMMAND
  std::string under;
  std::vector<std::string> command;
  std::vector<std::string> scans;  // NAME=VALUES
  std::string file;
  std::string resume;
  std::string output;
  std::vector<std::string> exports;
  std::string metric;
  std::string steps;
  std::string step_unit;
  std::string quality;
  std::string margin;
  bool more_is_better = false;
  std::string half_width;
  std::string max_time;
  std::string min_pairs;
  std::string max_pairs;
  std::string warm_up;
  std::string timeout;
  std::string prepare;
  std::string cleanup;
  std::string seed;
  bool no_second_baseline = false;

  // Whether a stopping rule or the judgement is given, which --resume may change.
  [[nodiscard]] bool changes_rules() const;
};

// What a command line asks for: one experiment, or one per value of a scan.
struct RequestedExperiments {
  std::vector<std::string> parameters;     // of a scan with an experiment per value
  std::vector<compare::ScanPoint> points;  // one without name and values if there is no such scan
};
// From the experiment file, if any, overridden by options.
base::Result<RequestedExperiments> requested_experiments(const CompareOptions& options);

// Applies the options that --resume allows; an error if others are given.
base::Result<void> change_experiment(const CompareOptions& options,
                                     compare::Experiment& experiment);

}  // namespace assay::cli
