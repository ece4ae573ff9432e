// The result of a suite of measurements as a part of a page: what was to be reached, and what was.
//
//   {"suite": "tracer overhead",
//    "goals": [{"what", "goal", "measured", "unit", "verdict", "note"}],
//    "tables": [{"title", "columns": [...], "rows": [[...]], "note"}]}
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

// `where` names the file in errors. Cells are texts, numbers, booleans or null.
base::Result<Part> suite_part(const base::Json& suite, const std::string& where);

}  // namespace assay::report
