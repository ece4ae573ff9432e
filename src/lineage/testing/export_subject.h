// What the export tests export.
#pragma once

#include <utility>
#include <vector>

#include "lineage/export/export.h"

namespace assay::lineage::testing {

inline ExportSubject subject_of(std::vector<store::RunRecord> runs) {
  return {.runs = std::move(runs), .project_root = "/project", .project_id = "feedc0de"};
}

}  // namespace assay::lineage::testing
