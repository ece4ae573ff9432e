// Sections of a planned job (plan_part.h): breakdown of a step, memory, scaling, communication,
// offers; and those for `assay plan --search`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/page.h"

namespace assay::report {

Section breakdown_section(const base::Json& plan);
Section memory_section(const base::Json& plan);
Section scaling_section(const base::Json& plan);
Section exchange_section(const base::Json& plan);
Section offers_section(const base::Json& plan);

// "$20.44 – $29.20", for {"low", "high"}; empty if not known.
std::string cost_text(const base::Json& range);

// Time against money, the recommendation and its reasons, what is not possible, what was assumed
// (plan_sections_search.cc).
std::vector<Section> search_sections(const base::Json& search);

// "2 machines of 8 x NVIDIA H100 (16 GPUs), from Vast, spot: 12.3 h, $240"; empty if nothing is
// recommended.
std::string recommended_text(const base::Json& search);

}  // namespace assay::report
