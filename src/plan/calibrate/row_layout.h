// The layout of a row: from its columns, with degrees that it leaves out chosen to fill its ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/calibrate/row_fields.h"
#include "plan/model/work.h"

namespace assay::plan {

struct RowLayouts {
  std::vector<Degrees> candidates;
  std::string assumed;  // what the row does not say
  std::string reason;   // why there are none; else empty
};

// `sequences` are those of a step, where they are known: with the row's micro-batches they tell
// how many ranks read data.
RowLayouts row_layouts(const RowFields& row, const Shape& shape, Framework framework,
                       const std::optional<double>& sequences);

}  // namespace assay::plan
