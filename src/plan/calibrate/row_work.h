// From a row's fields to work, one for each micro-batch that the row may have run with.
#pragma once

#include <string>
#include <vector>

#include "plan/calibrate/row_fields.h"
#include "plan/model/work.h"

namespace assay::plan {

struct RowWork {
  std::vector<Work> candidates;
  std::string reason;  // why there is none, or what was assumed
};

RowWork row_work(const RowFields& row);

}  // namespace assay::plan
