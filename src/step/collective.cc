#include "step/collective.h"

#include <array>

namespace assay::step {

std::string_view to_text(CollectiveKind kind) {
  constexpr std::array<std::string_view, 8> kNames = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast",
      "all_to_all", "send_receive",   "send",       "receive"};
  return kNames[static_cast<std::size_t>(kind)];
}

double sent_bytes(const Collective& c) {
  if (c.ranks <= 1) return 0;
  const auto bytes = static_cast<double>(c.bytes());
  const double others = static_cast<double>(c.ranks - 1) / static_cast<double>(c.ranks);
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      return 2 * others * bytes;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
      return others * bytes;
    case CollectiveKind::kReceive:
      return 0;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
    case CollectiveKind::kSend:
      break;
  }
  return bytes;
}

}  // namespace assay::step
