// A run of the store as a part of a page: its verdict, a summary, the sections of run_sections.h,
// and the data behind them.
#pragma once

#include <cstddef>

#include "report/page.h"
#include "report/reported_run.h"

namespace assay::report {

// Points per series in the raw data of a page; longer series are downsampled.
inline constexpr std::size_t kMostEmbedded = 2000;

PagePart run_part(const ReportedRun& run, std::size_t most_points = kMostEmbedded);

}  // namespace assay::report
