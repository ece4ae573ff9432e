// What `assay plan JOB` prints: the plan of a step (plan/plan.h), and what belongs to the job
// around it, as tables for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "cli/verb.h"
#include "plan/cost/money.h"
#include "plan/plan.h"
#include "plan/scaling.h"
#include "spec/load.h"

namespace assay::cli {

// What is known about a job before it runs.
struct JobPlan {
  spec::Loaded loaded;                    // a job
  plan::Plan plan;                        // its `unknown` lists what is missing below, too
  std::vector<plan::ScalePoint> scaling;  // where there is a step time
  // Where the time of a step and the length of training are known:
  std::optional<plan::RunTime> run;
  bool step_given = false;  // by --step-time, not predicted
  std::vector<plan::OfferCost> costs;
  std::optional<plan::Energy> energy;

  [[nodiscard]] const spec::JobSpec& job() const { return std::get<spec::JobSpec>(loaded.spec); }
};

// Where experts are spread over ranks: for which rows there is room. Empty elsewhere.
std::string room_for_experts(const JobPlan& plan);
// Why the recomputation is not the one that the job asks for; empty where it is.
std::string why_recomputed(const JobPlan& plan);

// job.cc: what options of `assay plan JOB` ask for, without printing it.
struct PlanOptions;
base::Result<JobPlan> make_job_plan(const PlanOptions& options);

void print_plan(const Session& session, const JobPlan& plan);
base::Json plan_json(const JobPlan& plan);

// print_prediction.cc: breakdown, memory, scaling.
void print_prediction(const Session& session, const JobPlan& plan);

// To the cent; JSON has the millionths.
std::string cents(const base::Money& amount);
std::string cents(const spec::PriceRange& range);
base::Json range_json(const spec::PriceRange& range);

}  // namespace assay::cli
