// A View as Prometheus reads it: the text exposition format, version 0.0.4.
#pragma once

#include <string>

#include "share/view.h"

namespace assay::share {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Totals of runs are counters, everything else is a gauge. What is not known is left out.
std::string metrics_text(const View& view);

}  // namespace assay::share
