// Tables of a suite's result with their charts, and helpers to read its JSON (suite_part.h
// describes it).
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

base::Error bad_suite(const std::string& where, std::string what);

// A text, number, boolean or null, or {"text", "value"}: a number with the text to show for it.
Cell suite_cell(const base::Json& value);
// The value of a key as text; empty if there is none.
std::string suite_text(const base::Json& object, const char* key);

// A suite's cases as {"case", "kind", "state", "why", "wall_s"}; results of earlier versions call
// them steps. An empty list if there are none.
base::Json suite_cases(const base::Json& suite);

// Removes columns that are empty in every row.
void leave_out_blank(PageTable& table);

// A table with its note, and its chart if it has one.
base::Result<Section> suite_table(const base::Json& json, const std::string& where);

}  // namespace assay::report
