// What ranks must agree on outside a step's ops, because each of them acts on it: where a run
// begins and when it stops.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "comm/communicator.h"

namespace assay::train {

// The first rank's value, on all of them.
base::Result<std::int64_t> told_by_first(comm::Communicator& ranks, std::int64_t value);

// Whether it is so on any rank.
base::Result<bool> on_any(comm::Communicator& ranks, bool so);

}  // namespace assay::train
