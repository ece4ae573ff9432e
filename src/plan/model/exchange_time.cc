#include "plan/model/exchange_time.h"

#include <algorithm>

namespace assay::plan {
namespace {

std::int64_t whole_ranks(double ranks) {
  constexpr double kMostRanks = 1e15;
  return static_cast<std::int64_t>(std::min(ranks, kMostRanks));
}

}  // namespace

double exchange_seconds(step::CollectiveKind kind, double bytes, const RankAxis& axis,
                        const Links& links, const Constants& constants, double share) {
  const RankGroup group = links.network.group(whole_ranks(axis.ranks), whole_ranks(axis.apart));
  // PCIe's figures were measured in training: plan/network/constants.h.
  const LinkShares shares{
      .nvlink = share * constants.coll_eff, .host = share, .network = share * constants.net_eff};
  return links.network.time(kind, bytes, group, shares).total.count();
}

double exchange_alone_seconds(step::CollectiveKind kind, double bytes, const RankAxis& axis,
                              const Links& links, double eff) {
  const RankGroup group = links.network.group(whole_ranks(axis.ranks), whole_ranks(axis.apart));
  return links.network.time(kind, bytes, group, {.nvlink = eff, .host = eff, .network = eff})
      .total.count();
}

}  // namespace assay::plan
