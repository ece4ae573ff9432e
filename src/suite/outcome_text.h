// A suite's outcome as text cells for tables and as JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "suite/outcome.h"

namespace assay::suite {

// "measured (quick)", "+0.31 [-0.20, +0.85]", "+1.2 %"
std::string label_text(const SuiteOutcome& outcome, const OurValue& ours);
std::string value_text(const FigureTable& table, const OurValue& ours);
// "within 15 %", "<= 1"
std::string goal_text(const Goal& goal);
std::string published_text(const FigureTable& table, const Figure& figure);
// The origin of our value, and how it differs from the published quantity.
std::string remark_text(const Figure& figure, const OurValue& ours);
// The difference between a planned and the published figure, in percent; empty for others.
std::string difference_text(const Figure& figure, const OurValue& ours);

// What `assay bench --json` prints.
base::Json to_json(const SuiteOutcome& outcome);

// A table's chart: lines of published and of our figures, and the ideal line. Null without a chart.
base::Json chart_json(const TableOutcome& found);

}  // namespace assay::suite
