// How long a collective takes: the least over what NCCL can choose from.
#include "base/check.h"
#include "plan/network/algorithms.h"

namespace assay::plan {

CollectiveTime Network::time(const step::Collective& collective, const Group& group) const {
  return time(collective.kind, static_cast<double>(collective.bytes()), group);
}

CollectiveTime Network::time(step::CollectiveKind kind, double bytes, const Group& group,
                             const LinkShares& shares) const {
  if (group.ranks <= 1 || bytes <= 0) return {};
  const bool has_network = count_ > 0 && tiers_[count_ - 1].kind == TierKind::kNetwork;
  ASSAY_CHECK(has_network || group.nodes() == 1, "a group over nodes without a network");
  const GroupLinks links(*this, group, shares);
  AlgorithmChoice choice(constants_, links, group, generation_, bytes);
  const auto ranks = static_cast<double>(group.ranks);
  const double part = bytes * (ranks - 1) / ranks;
  double sent = part;
  switch (kind) {
    using step::CollectiveKind;
    case CollectiveKind::kAllReduce:
      sent = 2 * part;
      choice.ring(2, sent);
      choice.tree();
      if (has_nvls()) choice.nvls(nvls_share_);
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      choice.ring(1, sent);
      break;
    case CollectiveKind::kBroadcast:
      sent = bytes;
      choice.ring(1, sent);
      break;
    case CollectiveKind::kAllToAll:
      choice.all_to_all();
      break;
    case CollectiveKind::kSendReceive:
      sent = bytes;
      choice.send();
      break;
  }
  const AlgorithmCandidate& best = choice.best();
  CollectiveTime time;
  time.latency = base::Seconds(best.latency_us * 1e-6);
  time.transfer = base::Seconds(best.transfer_s);
  time.total = time.latency + time.transfer;
  time.bus_bandwidth = base::BytesPerSecond(sent / time.total.count());
  time.algorithm = best.algorithm;
  time.protocol = best.protocol;
  return time;
}

}  // namespace assay::plan
