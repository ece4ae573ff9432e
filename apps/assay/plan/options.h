// Options of `assay plan`.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"
#include "plan/calibrate/calibration.h"
#include "plan/work_of_job.h"
#include "spec/load.h"

namespace assay::cli {

struct PlanOptions {
  std::string job;
  std::vector<std::string> sets;
  std::string framework, imbalance, constants, svg;
  std::string step_time, watts, pue, grid;  // a job's
  bool search = false;
  bool everywhere = false;
  std::string deadline, budget, min_devices, max_devices, memory;  // a search's
  std::string rows;
  std::vector<std::string> calibrate;
  std::string out;
};

// Parsing that several modes (modes.h) share.
// "assay plan JOB" with the options that the job's prediction depends on, as one may paste it.
std::string plan_command(const PlanOptions& options);
// Whether the folder of --svg can be written to. It is made, as far as possible before anything is
// computed or printed.
base::Result<void> check_svg(const PlanOptions& options);
base::Result<spec::Loaded> load_job(const PlanOptions& options);
// --framework and --imbalance.
base::Result<plan::Assumed> assumed_by(const PlanOptions& options);
base::Result<std::optional<double>> factor_of(const std::string& option, const std::string& text,
                                              double least, double most);
// The file that --constants names, or the shipped one.
base::Result<plan::Calibration> calibration_by(const PlanOptions& options);
// A bare number is of `unit`; without one it is refused.
base::Result<std::optional<base::Seconds>> duration_of(const std::string& option,
                                                       const std::string& text,
                                                       const char* unit = nullptr);

}  // namespace assay::cli
