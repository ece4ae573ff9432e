// Transfers: one rank's part in a call, as the bytes it sends to and receives from each rank. This
// defines the calls for host memory; implementations differ only in how a segment gets from one
// rank to another.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/communicator.h"

namespace assay::comm {

struct Outgoing {
  int peer = 0;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};
struct Incoming {
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// Empty segments are listed too, so that ranks which exchange nothing still verify that their calls
// agree. A rank's own segment is in neither list: copy_own() moves it.
struct Transfers {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  Outgoing own_from;
  Incoming own_to;

  void copy_own() const;
};

// `call` and `parts` have been checked by Communicator::issue. Fails if the parts are in device
// memory.
base::Result<Transfers> transfers_of(const Call& call, int rank, int ranks, const void* in,
                                     void* out, const AllToAllParts& parts);

}  // namespace assay::comm
