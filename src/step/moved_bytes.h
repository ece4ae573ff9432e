// The bytes that an op reads and writes: operands once, results once, and once more if they are
// added to or changed in place; for table lookups only the rows. Determines the time of
// memory-bound ops.
#pragma once

#include <cstdint>
#include <vector>

#include "step/op.h"

namespace assay::step {

struct MovedBytes {
  std::int64_t read = 0;
  std::int64_t written = 0;

  [[nodiscard]] double total() const { return static_cast<double>(read + written); }
};

MovedBytes moved_bytes(const Op& op, const std::vector<Buffer>& buffers);

}  // namespace assay::step
