// What is printed about a recorded run at its end.
#pragma once

#include <cstdint>
#include <string>

#include "lineage/record/run.h"
#include "store/run.h"

namespace assay::lineage {

// One line; empty for SummaryFormat::kNone.
std::string summary_text(SummaryFormat summary, const store::RunRecord& run, std::int64_t inputs,
                         std::int64_t outputs, bool used_network);

}  // namespace assay::lineage
