// Reduces the inputs of several ranks element by element, always in rank order, so that the result
// does not depend on timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"

namespace assay::comm {

// out[i] = reduction of from[0][i], from[1][i], … `out` may alias one of the inputs. bf16 is summed
// in fp32 and rounded once.
void reduce(std::span<const std::byte* const> from, std::byte* out, std::int64_t count, Dtype type,
            Reduction reduction);

}  // namespace assay::comm
