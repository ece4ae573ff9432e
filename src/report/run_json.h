// The data behind a run's part of a page. Environment and diff are left out, because pages are
// shared.
#pragma once

#include <cstddef>

#include "base/json.h"
#include "report/reported_run.h"

namespace assay::report {

base::Json run_json(const ReportedRun& run, std::size_t most_points);

}  // namespace assay::report
