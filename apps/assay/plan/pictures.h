// Plans and searches as SVG files.
#pragma once

#include <string>

#include "assay/plan/job.h"
#include "cli/verb.h"
#include "plan/calibrate/scores.h"
#include "plan/search/search.h"

namespace assay::cli {

// DIR/breakdown.svg and DIR/scaling.svg. Files of these names are replaced.
base::Result<void> draw_plan(const Session& session, const JobPlan& plan,
                             const std::string& folder);

// DIR/measured.svg: every row that was measured and is predicted.
base::Result<void> draw_rows(const Session& session, const std::vector<plan::Row>& rows,
                             const std::vector<plan::RowPrediction>& predictions,
                             const std::string& folder);

// DIR/pareto.svg.
// Without prices, GPU-hours take the place of money.
base::Result<void> draw_search(const Session& session, const std::string& name,
                               const plan::Found& found, bool is_priced, const std::string& folder);

}  // namespace assay::cli
