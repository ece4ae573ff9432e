// Collective: one collective operation, as the planner counts and prices it.
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
  kSend,         // one end of that, in the list of what one rank does
  kReceive,      // and the other
};

std::string_view to_text(CollectiveKind kind);

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Dtype type = Dtype::kBf16;
  std::int64_t elements = 0;  // of the whole: what is gathered, scattered, reduced or exchanged
  std::int64_t ranks = 1;

  [[nodiscard]] std::int64_t bytes() const { return elements * bytes_of(type); }
};

// What each rank sends, at least: 2 (n-1)/n of the bytes to reduce everywhere, (n-1)/n to scatter,
// gather or exchange, all of them to send or broadcast, and none to receive.
double sent_bytes(const Collective& collective);

}  // namespace assay::step
