// An all-to-all with counts and offsets per rank, waited for. The trainer issues such calls and
// waits later.
#pragma once

#include "comm/communicator.h"

namespace assay::comm::testing {

inline base::Result<void> uneven_all_to_all(Communicator& c, const void* in, void* out,
                                            ElementType type, const AllToAllParts& parts) {
  ASSAY_TRY(const Ticket ticket, c.issue({CommKind::kAllToAllV, 0, type}, in, out, {}, parts));
  return c.wait(ticket);
}

}  // namespace assay::comm::testing
