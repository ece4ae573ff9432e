// Reduces what several ranks brought, element by element and always in the order of the ranks, so
// that the result depends on nobody's timing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"

namespace assay::comm {

// out[i] = from[0][i], from[1][i], … reduced. `out` may be one of them. bf16 is added up in fp32
// and rounded once.
void reduce(std::span<const std::byte* const> from, std::byte* out, std::int64_t count, Dtype type,
            Reduction reduction);

}  // namespace assay::comm
