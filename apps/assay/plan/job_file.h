// `assay plan JOB --search -o FILE`: a job file of what is recommended, which extends the job.
#pragma once

#include <string>
#include <vector>

#include "assay/plan/options.h"
#include "base/result.h"
#include "plan/search/search.h"
#include "spec/job.h"

namespace assay::cli {

// Keys that turn the job into what is recommended: "layout.tp=2". With another cluster than its
// own, that cluster's preset.
std::vector<std::string> settings_of(const spec::JobSpec& job, const plan::Candidate& one);

// What a job file cannot say is refused before anything is searched.
base::Result<void> check_job_output(const PlanOptions& options);

// Written only where it can be read again; nothing where nothing is recommended.
base::Result<void> write_job(const Session& session, const PlanOptions& options,
                             const spec::JobSpec& job, const plan::Found& found);

}  // namespace assay::cli
