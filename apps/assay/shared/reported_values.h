// Parameters and last metrics of a run as text, for `assay log --columns` and `assay diff`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "lineage/graph/run_diff.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::cli {

base::Result<lineage::ReportedValues> reported_values(store::Store& store, store::RunId run);
// Of a name that is both, the parameter.
std::optional<std::string> value_of(const lineage::ReportedValues& values, const std::string& name);

}  // namespace assay::cli
