// Predicted peak memory of a rank, in the pipeline stage that needs most.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "plan/model/constants.h"
#include "plan/model/work.h"

namespace assay::plan {

struct MemoryNeed {
  base::Bytes parameters;
  base::Bytes gradients;
  base::Bytes optimizer;
  base::Bytes activations;  // kept for the backward pass, logits included
  base::Bytes gathered;     // what FSDP holds unsharded, communication's buffers
  base::Bytes workspace;    // of the layer at work, context, libraries, fragmentation
  double stage = 0;         // pipeline stage whose ranks need the most

  [[nodiscard]] base::Bytes total() const {
    return parameters + gradients + optimizer + activations + gathered + workspace;
  }
};

// Rounds a part, which is not negative. Amounts beyond an exbibyte, and values that are not
// numbers, count as an exbibyte: that fits nowhere, and sums of parts do not overflow.
inline base::Bytes whole_bytes(double bytes) {
  constexpr double kMostBytes = 1024.0 * 1024 * 1024 * 1024 * 1024 * 1024;
  return base::Bytes(std::llround(std::min(kMostBytes, bytes)));
}

MemoryNeed memory_need(const Work& work, const MemoryConstants& constants);

}  // namespace assay::plan
