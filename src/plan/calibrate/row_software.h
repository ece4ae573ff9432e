// Which framework a row ran on, and options of it that the row mentions.
#pragma once

#include <string>

#include "plan/calibrate/row_fields.h"
#include "plan/model/software.h"
#include "plan/model/work.h"

namespace assay::plan {

struct RowFramework {
  Framework framework = Framework::kTorch;
  std::string assumed;  // empty where the row's text names it
};

RowFramework row_framework(const RowFields& row, bool moe);
Software row_software(const RowFields& row, Framework framework, const Shape& shape,
                      const Card& card);

}  // namespace assay::plan
