// A job's plan as `assay plan JOB` makes it: the plan of a step (plan/plan.h), and what belongs to
// the job around it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/plan/options.h"
#include "base/result.h"
#include "plan/cost/money.h"
#include "plan/plan.h"
#include "plan/scaling.h"
#include "spec/load.h"

namespace assay::cli {

// Counted memory fits or does not. Of predicted memory it is open where the prediction fits, and
// the upper end of its interval, `needed`, does not.
enum class Fit { kYes, kPerhaps, kNo };
Fit fit_of(const std::optional<plan::PlannedMemory>& memory, const plan::ErrorInterval& needed);
std::string_view to_text(Fit fit);  // "fits", "may not fit", "does not fit"
base::ExitCode exit_code_of(Fit fit);

// What is known about a job before it runs. A job that does not fit has no step, and with it
// nothing that follows from one.
struct JobPlan {
  spec::Loaded loaded;                          // a job
  plan::Plan plan;                              // its `unknown` lists what is missing below, too
  std::vector<plan::ScalePoint> scaling;        // where a step can be predicted
  std::optional<plan::ErrorInterval> interval;  // of the steps in `scaling`
  plan::MemoryIntervals memory_intervals;       // of predicted memory
  std::string constants_file;                   // of --constants; empty for those shipped
  std::string known_errors;     // of predicted steps: a sentence about the constants in use
  std::string asked_recompute;  // as the job or --set spells it
  std::string framework_why;    // where it is not the default for the model; else empty
  // Where the time of a step and the length of training are known:
  std::optional<plan::RunTime> run;
  bool step_given = false;  // by --step-time, not predicted
  std::vector<plan::OfferCost> costs;
  std::optional<plan::Energy> energy;

  [[nodiscard]] Fit fit() const { return fit_of(plan.memory, memory_intervals.needed); }
  [[nodiscard]] const spec::JobSpec& job() const { return std::get<spec::JobSpec>(loaded.spec); }
};

// Where experts are spread over ranks: for which rows there is room. Empty elsewhere.
std::string room_for_experts(const JobPlan& plan);
// Why the recomputation is not the one that the job asks for; empty where it is.
std::string why_recomputed(const JobPlan& plan);
// The same of the pipeline's schedule.
std::string why_scheduled(const JobPlan& plan);

// What options of `assay plan JOB` ask for, without printing it.
base::Result<JobPlan> make_job_plan(const PlanOptions& options);

}  // namespace assay::cli
