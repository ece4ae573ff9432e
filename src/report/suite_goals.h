// The goals of a suite's result, and the overall verdict, which says how many of the goals reached
// were measured and how many only computed.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "report/page.h"

namespace assay::report {

base::Result<Table> suite_goals(const base::Json& goals, const std::string& where);
Verdict suite_verdict(const base::Json& suite);

}  // namespace assay::report
