// The passes of a rank over its micro-batches, and the parts of them that totals need as well.
#pragma once

#include <cstdint>
#include <vector>

#include "step/builder.h"
#include "step/pipeline.h"

namespace assay::step {

void build_passes(Builder& b);

// Sends the stream to the next stage in that direction, or receives it from the previous one.
Op send_stream(Builder& b, Pass::Direction direction, const View& x);
Op receive_stream(Builder& b, Pass::Direction direction, const View& x);
// The units that a pass uses, in order.
std::vector<std::int32_t> units_of_pass(Builder& b, const Pass& pass);

}  // namespace assay::step
