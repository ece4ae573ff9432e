// Blocks of a suite's part, each from one element of its JSON (suite_part.h has the form).
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

base::Error bad_suite(const std::string& where, std::string what);

// A text, number, boolean or null, or {"text", "value"}: a text that stands for a number.
Cell suite_cell(const base::Json& value);
// What stands at a key, as text; empty where nothing does.
std::string suite_text(const base::Json& object, const char* key);

// Columns in which nothing stands only make the others narrow.
void leave_out_blank(Table& table);

// suite_tables.cc: a table with its note, and its chart where it has one.
base::Result<Section> suite_table(const base::Json& json, const std::string& where);

// suite_goals.cc: what was to be reached; and the verdict on all of it, which says how much of what
// was reached was seen and how much only computed.
base::Result<Table> suite_goals(const base::Json& goals, const std::string& where);
Verdict suite_verdict(const base::Json& suite);

}  // namespace assay::report
