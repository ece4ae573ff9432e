// Sections for `assay plan --search` (plan_part.h): time against money, the recommendation and its
// reasons, what is not possible, what was assumed.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/page.h"

namespace assay::report {

std::vector<Section> search_sections(const base::Json& search);

// "2 x h100-sxm-8 from Vast, spot: 12.3 h, $240"; empty if nothing is recommended.
std::string recommended_text(const base::Json& search);

}  // namespace assay::report
