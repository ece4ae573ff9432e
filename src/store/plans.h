// Plans: what was predicted about a run when it started. Stored, so that a report compares the run
// with that prediction and not with one made later. The trainer writes one, `assay report` reads
// it. Table `plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

struct PlanRecord {
  std::int64_t planned_unix_ns = 0;
  std::string job;     // name of the job that was planned
  std::string device;  // the device that the plan is for
  std::optional<double> step_s;
  std::optional<std::int64_t> memory_bytes;  // for the rank that needs most
  base::Json plan;                           // the complete plan; the fields above are copies
};

// Writes the plan of the run with this uid, unless it already has one. No such run is an error.
// False: other processes kept the store locked and nothing was written; try again.
base::Result<bool> write_plan(Store& store, const std::string& run_uid, const PlanRecord& record);

// Nothing for runs without a plan: those not started by the trainer, or recorded before plans were
// stored.
base::Result<std::optional<PlanRecord>> load_plan(Store& store, RunId run);

}  // namespace assay::store
