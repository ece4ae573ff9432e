#include "plan/links_time.h"

#include <algorithm>

#include "plan/network_constants.h"

namespace assay::plan {
namespace {

constexpr double kNvlinkRing = 0.81;      // of nominal, by NCCL's tables
constexpr double kLeastNvlink = 100e9;    // what is slower is PCIe
constexpr double kMostPcie = 64e9;        // generation 5, 16 lanes
constexpr NetworkConstants kHostLinks{};  // as they were measured

// A ring has `members` in a node. It shares what is between sockets with the rings beside it.
bool crosses_sockets(double members, double apart, const Links& links) {
  return links.between_sockets > 0 && members > 1 && members * apart > links.per_node / 2;
}

// A card whose processes have this many is not waited for: 31 were enough, 20 were not.
constexpr double kEnoughThreads = 24;

}  // namespace

void set_inside(Links& links, double nominal, bool everywhere, bool one_socket) {
  links.through_host = !everywhere || nominal <= kLeastNvlink;
  links.between_sockets = 0;
  if (!links.through_host) {
    links.inside = kNvlinkRing * nominal;
    return;
  }
  links.inside = kHostLinks.pcie_share * std::min(nominal, kMostPcie);
  const auto most = static_cast<double>(kHostLinks.cards_per_socket);
  if (!one_socket && links.per_node > most)
    links.between_sockets = kHostLinks.between_sockets * 1e9;
}

// Latencies are NCCL's own, in microseconds (network_constants.h): LL's beginning with LL128's hops
// inside a node, Simple's between nodes.
RingPace ring_pace(double ranks, double apart, const Links& links, const Constants& constants) {
  const double members = std::min(std::max(links.per_node / apart, 1.0), ranks);
  RingPace pace;
  pace.bandwidth = send_bandwidth(links, constants);
  if (crosses_sockets(members, apart, links)) {
    const double share = links.between_sockets * members / links.per_node;
    pace.bandwidth = std::min(pace.bandwidth, share);
  }
  if (ranks * apart <= links.per_node) {
    pace.latency = (6.6 + (ranks - 1) * 1.9) * 1e-6;
    return pace;
  }
  // As many ranks of the ring as a node has, so many networks can it use there.
  pace.bandwidth = std::min(pace.bandwidth, links.outside * constants.net_eff * members);
  const double nodes = std::max(1.0, ranks / links.per_node);
  pace.latency = (8.4 + (ranks - nodes) * 3.4 + nodes * 14.0) * 1e-6;
  return pace;
}

double send_bandwidth(const Links& links, const Constants& constants) {
  return links.through_host ? links.inside : links.inside * constants.coll_eff;
}

double all_to_all_bandwidth(const Links& links, const Constants& constants) {
  const double send = send_bandwidth(links, constants);
  if (links.between_sockets <= 0) return send;
  // Half of what half of the cards send goes to the other socket.
  return std::min(send, 4 * links.between_sockets / links.per_node);
}

void set_threads(Links& links, double of_node) {
  const double each = of_node / links.per_node;
  if (each < kEnoughThreads) links.scarce_threads = each;
}

}  // namespace assay::plan
