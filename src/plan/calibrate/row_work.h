// From a row's fields to work, one for each layout and micro-batch that the row may have run with.
#pragma once

#include <string>
#include <vector>

#include "plan/calibrate/row_fields.h"
#include "plan/model/work.h"

namespace assay::plan {

struct RowWork {
  std::vector<Work> candidates;
  std::string reason;          // why there is none, or what was assumed
  bool assumed = false;        // something that a step depends on
  bool batch_unknown = false;  // how much a step reads is a guess
  bool by_rate = false;        // only its tokens per second can be compared
  bool micro_unknown = false;  // its memory cannot be compared
};

RowWork row_work(const RowFields& row);

}  // namespace assay::plan
