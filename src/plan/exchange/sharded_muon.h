// The exchange of nanochat's sharded Muon + AdamW: every rank has all weights, and updates its
// share of them.
#pragma once

#include "plan/exchange/communication.h"

namespace assay::plan {

// Muon over ranks that only read different tokens: fsdp ranks that keep their parameters whole
// (layout.zero 1 or 2), and no other degree.
bool is_sharded_muon(const spec::JobSpec& job);

Communication sharded_muon(const spec::JobSpec& job);

}  // namespace assay::plan
