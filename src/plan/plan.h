// Plan: what is predicted about a job's step before it runs, as one value: its time with interval
// and parts, its memory, what ranks exchange, throughput and MFU, and why something could not be
// predicted. Memory and exchange of what our trainer executes are counted from its programs. `assay
// plan` prints it, `assay train` stores it when training starts, and `assay report` puts it beside
// what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "plan/exchange/planned_exchange.h"
#include "plan/model/intervals.h"
#include "plan/model/memory.h"
#include "plan/model/step_time.h"
#include "plan/prediction.h"
#include "plan/rank_footprints.h"
#include "spec/job.h"

namespace assay::plan {

struct PlannedStep {
  StepTime time;
  ErrorInterval interval;                   // factors of it, from projects that no fit had seen
  std::string comparable;                   // the class of software that these rows are of
  std::vector<std::string> extrapolations;  // what no comparable row has
  double tokens_per_s = 0;                  // of all ranks
  double mfu = 0;                           // without the embedding's parameters
  double mfu_with_embedding = 0;            // as often published

  // The 80 % interval.
  [[nodiscard]] base::Seconds low() const { return time.total * interval.low; }
  [[nodiscard]] base::Seconds high() const { return time.total * interval.high; }
};

struct PlannedMemory {
  MemoryNeed need;        // of the rank that needs the most memory
  base::Bytes device;     // memory of a device; 0: not known
  bool counted = false;   // from the buffers of the trainer's program: exact, not predicted
  std::int64_t rank = 0;  // one of the ranks that need the most

  [[nodiscard]] bool fits() const { return device.count() == 0 || need.total() <= device; }
};

// For a mixture whose experts are spread over ranks.
struct PlannedExperts {
  std::int64_t ranks = 1;
  double imbalance = 1;     // rows of the most loaded expert / an even share: an input of the plan
  bool is_assumed = false;  // not given by the user
  double fullest_rank = 1;  // rows that it computes and receives / an even share

  // Of other software: the constants are fitted to runs whose loads were as they were.
  [[nodiscard]] bool is_contained() const { return is_assumed && imbalance == 1; }
};

struct Plan {
  std::string job;        // its name
  std::string device;     // for which it was planned
  std::string framework;  // the software that runs it
  std::string refused;    // the error of `assay train`; empty: none, or other software runs it
  std::string recompute;  // as chosen, where the job leaves it open
  std::string constants;  // version of the model's constants: constants_version()
  std::int64_t ranks = 1;
  std::int64_t tokens_per_step = 0;  // of all ranks
  std::optional<PlannedStep> step;
  std::optional<PlannedMemory> memory;
  std::optional<PlannedExchange> exchange;
  std::optional<PlannedExperts> experts;
  std::vector<std::string> unknown;  // what could not be predicted, why, and what to set
};

// `recompute` as the model has it; none where nothing was chosen.
RecomputeKind recompute_of(const Plan& plan);

struct PlanInputs {
  Assumed assumed;
  ModelConstants constants;
  IntervalTable intervals = shipped_intervals();
  Seen seen = shipped_seen();
};

// Never fails: what cannot be predicted is missing, and `unknown` says why.
Plan plan_of(const std::string& name, const spec::JobSpec& job, const PlanInputs& inputs = {});

// What plans and searches take in place of our trainer, where it refuses the job in every layout.
std::optional<Framework> framework_instead(const spec::JobSpec& job);

// What plans take in place of nanochat, for its models in layouts that it does not execute. A
// search leaves such layouts out.
std::optional<Framework> framework_for_layout(const spec::JobSpec& job);

// The plan of a run on a device that steps are not predicted for; the caller adds what it knows.
Plan plan_without_step(const std::string& name, const spec::JobSpec& job, const std::string& device,
                       const std::string& reason);

// Puts memory, exchange and recomputation as the trainer's programs have them into a plan. Fails,
// leaving the plan as it was, where the trainer has no program for the job.
base::Result<void> add_programs(Plan& plan, const spec::JobSpec& job, const RankDevice& device);

// A fingerprint of all constants' values: equal for equal constants, in any program.
std::string constants_version(const ModelConstants& constants);

// The calls of a rank, as in `collectives` of the plan's JSON.
base::Json to_json(const std::vector<PlannedCalls>& calls);

// The keys of `assay plan --json` that are about the step; what is not known is null.
base::Json to_json(const Plan& plan);
// Reads what to_json() wrote, also of later versions with further keys.
base::Result<Plan> plan_from_json(const base::Json& json);

}  // namespace assay::plan
