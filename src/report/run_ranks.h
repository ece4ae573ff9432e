// The ranks of a training run: each one's time and waiting compared with the prediction, and which
// one the others wait for.
#pragma once

#include "base/json.h"
#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

// Empty for a run with one rank.
Section ranks_section(const ReportedRun& run);

// {"ranks": […], "slowest": {…} or null}; null for a run with one rank.
base::Json ranks_json(const ReportedRun& run);

}  // namespace assay::report
