// A UsageView in Prometheus' text format.
#pragma once

#include <string>

#include "share/usage_view.h"

namespace assay::share {

// Running totals are counters, everything else is a gauge. Unknown values are left out.
std::string metrics_text(const UsageView& view);

}  // namespace assay::share
