// Transfers: a call of one rank, as the bytes it sends to and receives from each rank. This is the
// definition of the calls for ranks in host memory; implementations differ only in how a segment
// gets from one rank to another.
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

// Also empty segments are listed: ranks that exchange nothing still learn that their calls agree. A
// rank's own segment is in neither list: copy_own moves it.
struct Transfers {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  Outgoing own_from;
  Incoming own_to;

  void copy_own() const;
};

// `call` and `parts` have been checked (Communicator::issue). An error if the parts are in device
// memory.
base::Result<Transfers> transfers_of(const Call& call, int rank, int ranks, const void* in,
                                     void* out, const Parts& parts);

}  // namespace assay::comm
