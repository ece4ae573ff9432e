// The shape of a row's model: from its columns, as published for its name, or from its size.
#pragma once

#include <string>

#include "plan/calibrate/row_fields.h"
#include "plan/model/work.h"

namespace assay::plan {

struct RowShape {
  Shape shape;
  std::string assumed;  // what the row does not say
  std::string reason;   // why there is none; else empty
};

RowShape row_shape(const RowFields& row);

}  // namespace assay::plan
