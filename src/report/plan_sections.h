// Sections of a planned job (plan_part.h): breakdown of a step, memory, scaling, communication,
// offers.
#pragma once

#include <string>

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

}  // namespace assay::report
