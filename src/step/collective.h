// Collective: a collective operation, as the planner counts and prices it.
#pragma once

#include <cstdint>
#include <string_view>

#include "step/buffer.h"

namespace assay::step {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kSendReceive,  // to one other rank, as pipelines do
  kSend,         // one side of it, in a rank's own list
  kReceive,      // the other side
};

std::string_view to_text(CollectiveKind kind);

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Dtype type = Dtype::kBf16;
  std::int64_t elements = 0;  // in total: all that is gathered, scattered, reduced or exchanged
  std::int64_t ranks = 1;

  [[nodiscard]] std::int64_t bytes() const { return elements * bytes_of(type); }
};

// The minimum that each rank sends: 2 (n-1)/n of the bytes for all-reduce; (n-1)/n for
// reduce-scatter, all-gather and all-to-all; all of them for send and broadcast; none for receive.
double sent_bytes(const Collective& collective);

}  // namespace assay::step
