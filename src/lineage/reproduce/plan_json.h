// A reproduction plan as JSON: `assay reproduce --json` (docs/reproduce.md).
#pragma once

#include "base/json.h"
#include "lineage/reproduce/plan.h"

namespace assay::lineage {

base::Json to_json(const ReproductionPlan& plan);

}  // namespace assay::lineage
