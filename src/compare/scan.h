// Parameter scans: --scan N=1,2,4 replaces {N} in commands, environments and hooks.
//
// - An experiment with one arm becomes one experiment with an arm per value; the first is the
//   baseline. All values run in every block, so they are paired.
// - An experiment with several arms becomes one experiment per value.
// Several parameters give all combinations of their values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/experiment.h"

namespace assay::compare {

struct ScanParameter {
  std::string name;
  std::vector<std::string> values;
};
// Why it cannot be scanned ("has an empty or quoted value"); empty if it can.
std::string problem_of(const ScanParameter& parameter);
// "N=1,2,4"
base::Result<ScanParameter> parse_scan(std::string_view text);

struct ScanPoint {
  std::string name;                 // "N=1,M=2"; also the name of its folder
  std::vector<std::string> values;  // by parameter
  Experiment experiment;
};

// The experiment with one arm per value, made from `experiment`, which has one arm.
base::Result<Experiment> with_arm_per_value(const Experiment& experiment,
                                            std::span<const ScanParameter> parameters);
// One experiment per value, made from `experiment`, which has several arms.
base::Result<std::vector<ScanPoint>> experiment_per_value(
    const Experiment& experiment, std::span<const ScanParameter> parameters);

}  // namespace assay::compare
