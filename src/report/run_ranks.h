// The ranks of a training run: what each took and waited for, against what was predicted, and which
// one the others wait for.
#pragma once

#include "base/json.h"
#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

// Empty for a run on one rank.
Section ranks_section(const ReportedRun& run);

// {"ranks": […], "slowest": {…} or null}; null for a run on one rank.
base::Json ranks_json(const ReportedRun& run);

}  // namespace assay::report
