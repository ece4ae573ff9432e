// `assay plan JOB --search -o FILE`: a job file of what is recommended, which extends the job.
#pragma once

#include "assay/plan/options.h"
#include "base/result.h"
#include "plan/search/search.h"
#include "spec/job.h"

namespace assay::cli {

// What a job file cannot say is refused before anything is searched.
base::Result<void> check_job_output(const PlanOptions& options);

// Written only where it can be read again; nothing where nothing is recommended.
base::Result<void> write_job(const Session& session, const PlanOptions& options,
                             const spec::JobSpec& job, const plan::Found& found);

}  // namespace assay::cli
