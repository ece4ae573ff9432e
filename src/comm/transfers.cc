#include "comm/transfers.h"

#include <cstring>

namespace assay::comm {
namespace {

// The bytes that are sent to, or received from, one rank.
struct Extent {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

class Builder {
 public:
  Builder(int rank, const void* in, void* out)
      : rank_(rank), in_(static_cast<const std::byte*>(in)), out_(static_cast<std::byte*>(out)) {}

  void send(int peer, Extent extent) {
    // A null buffer is allowed where nothing is moved, and has no elements to point at.
    const std::byte* data = extent.bytes > 0 ? in_ + extent.offset : nullptr;
    const Outgoing segment = {peer, data, static_cast<std::size_t>(extent.bytes)};
    if (peer == rank_) {
      list_.own_from = segment;
    } else {
      list_.out.push_back(segment);
    }
  }
  void receive(int peer, Extent extent) {
    std::byte* data = extent.bytes > 0 ? out_ + extent.offset : nullptr;
    const Incoming segment = {peer, data, static_cast<std::size_t>(extent.bytes)};
    if (peer == rank_) {
      list_.own_to = segment;
    } else {
      list_.in.push_back(segment);
    }
  }
  Transfers take() { return std::move(list_); }

 private:
  int rank_;
  const std::byte* in_;
  std::byte* out_;
  Transfers list_;
};

}  // namespace

void Transfers::copy_own() const {
  if (own_to.bytes > 0 && own_from.bytes == own_to.bytes && own_from.data != own_to.data) {
    std::memcpy(own_to.data, own_from.data, own_to.bytes);
  }
}

base::Result<Transfers> transfers_of(const Call& call, int rank, int ranks, const void* in,
                                     void* out, const AllToAllParts& parts) {
  if (parts.on_device) {
    return base::fail(
        base::usage_error(to_text(call), "counts and offsets in device memory need ranks on GPUs"));
  }
  Builder builder(rank, in, out);
  const std::int64_t bytes = call.bytes();
  const std::int64_t element = bytes_of(call.type);
  // Starting with the next rank spreads the first messages over all ranks.
  for (int step = 1; step <= ranks; ++step) {
    const int peer = (rank + step) % ranks;
    const auto at = static_cast<std::size_t>(peer);
    switch (call.kind) {
      case CommKind::kAllGather:
        builder.send(peer, {0, bytes});
        builder.receive(peer, {peer * bytes, bytes});
        break;
      case CommKind::kAllToAll:
        builder.send(peer, {peer * bytes, bytes});
        builder.receive(peer, {peer * bytes, bytes});
        break;
      case CommKind::kBarrier:
        builder.send(peer, {});
        builder.receive(peer, {});
        break;
      case CommKind::kBroadcast:
        if (rank == call.root) builder.send(peer, {0, bytes});
        if (peer == call.root) builder.receive(peer, {0, bytes});
        break;
      case CommKind::kSend:
        if (peer == call.peer) builder.send(peer, {0, bytes});
        break;
      case CommKind::kReceive:
        if (peer == call.peer) builder.receive(peer, {0, bytes});
        break;
      case CommKind::kAllToAllV:
        builder.send(peer, {parts.send_offsets[at] * element, parts.send_counts[at] * element});
        builder.receive(peer,
                        {parts.receive_offsets[at] * element, parts.receive_counts[at] * element});
        break;
    }
  }
  return builder.take();
}

}  // namespace assay::comm
