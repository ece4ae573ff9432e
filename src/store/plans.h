// Plans: what was predicted about a run when it started, so that a report compares with that and
// not with what would be predicted later. The trainer writes one, `assay report` reads it. Table
// `plan`.
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
  std::string device;  // that it was planned for
  std::optional<double> step_s;
  std::optional<std::int64_t> memory_bytes;  // of the rank that needs most
  base::Json plan;                           // all of it; the columns above are copies for queries
};

// Writes the plan of the run with this uid; a run that has one keeps it. No such run is an
// error. False: others kept the store locked, nothing was written, try again.
base::Result<bool> write_plan(Store& store, const std::string& run_uid, const PlanRecord& record);

// Nothing for runs without a plan: other programs', and those of before there were plans.
base::Result<std::optional<PlanRecord>> load_plan(Store& store, RunId run);

}  // namespace assay::store
