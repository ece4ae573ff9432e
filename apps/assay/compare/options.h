// What `assay compare` was told, as it stands on the command line, and what becomes of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/records.h"

namespace assay::cli {

struct CompareWords {
  std::string a;
  std::string b;
  std::vector<std::string> arms;  // NAME=COMMAND
  std::string under;
  std::vector<std::string> command;
  std::string file;
  std::string resume;
  std::string output;
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
};

// A new experiment: the file's, if there is one, with the options over it.
base::Result<compare::Experiment> experiment_of(const CompareWords& words);
// Options that may be given to an experiment that goes on; the others are refused.
base::Result<void> change_experiment(const CompareWords& words, compare::Experiment& experiment);

// compare_sitting.cc: this machine, this program and the project in the folder, now.
compare::Sitting sitting_in(const std::string& directory, std::vector<std::string> preflight);

// compare_file.cc: an experiment file.
base::Result<compare::Experiment> read_experiment(const std::string& file);
// The same of text that stands elsewhere; `source` names it in errors.
base::Result<compare::Experiment> experiment_in(const std::string& text, const std::string& source);

// The forms that options and files share. Errors name `where`.
base::Result<double> percentage(const std::string& where, std::string_view text);
base::Result<double> step_unit_of(const std::string& where, std::string_view text);
base::Result<base::Seconds> duration(const std::string& where, std::string_view text);
base::Result<compare::Metric> metric_of(const std::string& where, std::string_view text);
base::Result<compare::Metric> steps_metric_of(const std::string& where, std::string_view text);

}  // namespace assay::cli
