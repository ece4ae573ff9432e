// Plans and searches as SVG files.
#pragma once

#include <string>

#include "assay/plan/print.h"
#include "cli/verb.h"
#include "plan/calibrate/scores.h"
#include "plan/search/search.h"

namespace assay::cli {

// DIR/breakdown.svg and DIR/scaling.svg. The folder is made; files of these names are replaced.
base::Result<void> draw_plan(const Session& session, const JobPlan& plan,
                             const std::string& folder);

// DIR/measured.svg: every row that was measured and is predicted.
base::Result<void> draw_rows(const Session& session, const std::vector<plan::Row>& rows,
                             const std::vector<plan::RowPrediction>& predictions,
                             const std::string& folder);

// DIR/pareto.svg.
base::Result<void> draw_search(const Session& session, const std::string& name,
                               const plan::Found& found, const std::string& folder);

}  // namespace assay::cli
