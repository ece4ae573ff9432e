// The modes of `assay plan`, which its options select.
#pragma once

#include "assay/plan/options.h"
#include "base/json.h"
#include "cli/verb.h"

namespace assay::cli {

// One job (job.cc), a search (search.cc), measured rows (rows.cc).
base::Result<base::ExitCode> plan_job(const Session& session, const PlanOptions& options);
base::Result<base::ExitCode> plan_search(const Session& session, const PlanOptions& options);
// The JSON of a search, without printing it: what plan_search() would print of the same options.
base::Result<base::Json> search_json(const PlanOptions& options);
base::Result<base::ExitCode> plan_rows(const Session& session, const PlanOptions& options);
base::Result<base::ExitCode> plan_calibrate(const Session& session, const PlanOptions& options);

}  // namespace assay::cli
