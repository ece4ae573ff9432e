// The result of a suite as a part of a page: its goals and figures.
//
//   {"suite": "tracer overhead", "title", "reproduces", "url", "note", "quick", "complete",
//    "failed", "begun", "commit", "directory", "machine": {...},
//    "goals": [{"what", "goal", "measured", "ours", "label", "in_fit", "unit", "verdict",
//               "note"}],
//    "tables": [{"title", "columns": [...], "rows": [[...]], "note",
//                "chart": {"x", "y", "lines": [{"name", "points": [[x, y, low, high]]}],
//                          "ideal": {"name", "at_zero", "per_x"}}}],
//    "cases": [{"case", "kind", "state", "wall_s": [...], "why"}]}
//
// Everything except "suite" is optional.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

// `where` names the file in errors. Cells are texts, numbers, booleans, null or
// {"text", "value"}.
base::Result<PagePart> suite_part(const base::Json& suite, const std::string& where);

}  // namespace assay::report
