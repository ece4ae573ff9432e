#include "plan/calibrate/row_cluster.h"

#include <algorithm>

#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

constexpr std::int64_t kCardsPerSocket = 4;
// Boards of up to this many cards connect them directly, larger ones through switches.
constexpr std::int64_t kDirectlyLinked = 4;
constexpr double kMostThreads = 1e6;
constexpr double kLargestDomain = 576;
// Slower links are PCIe: no NVLink is slower, and a link of this speed reaches no less than PCIe,
// also while cards compute. Bridges between pairs reach a smaller part of their speed, so their
// limit is higher.
constexpr base::BytesPerSecond kLeastNvlink(150e9);
constexpr base::BytesPerSecond kLeastBridge(200e9);
constexpr base::BytesPerSecond kMostPcie(64e9);  // generation 5, 16 lanes

// "GB200-NVL36", "NVL8 domain"; else what the card is built into.
std::int64_t domain_of(const RowFields& row, const CardSheet& sheet) {
  for (const std::string& text : {lower_case(row.gpu_type), row.lower_notes}) {
    const auto said = number_after(text, "nvl", true);
    if (said && *said >= 2 && *said <= kLargestDomain) return static_cast<std::int64_t>(*said);
  }
  return sheet.domain;
}

spec::LinkSpec row_link(const RowFields& row, const CardSheet& sheet, std::int64_t per_node) {
  const auto nominal = row.intra_bw ? base::BytesPerSecond(*row.intra_bw * 1e9) : sheet.link;
  const bool switched = sheet.domain > 0;
  const std::int64_t bridged = bridged_cards(row.gpu_type);
  const bool pairs = !switched && (bridged > 0 || contains(row.lower_notes, "pairs"));
  spec::LinkSpec link{.bandwidth = nominal};
  link.pcie = std::min(nominal, kMostPcie);
  if (nominal < (pairs ? kLeastBridge : kLeastNvlink)) {
    link.kind = spec::LinkKind::kPcie;
  } else if (pairs) {
    link.kind = spec::LinkKind::kNvlinkGroups;
    link.group = std::max<std::int64_t>(bridged, 2);
  } else {
    const bool direct = !switched && per_node <= kDirectlyLinked;
    link.kind = direct ? spec::LinkKind::kNvlinkMesh : spec::LinkKind::kNvswitch;
    if (switched) link.group = domain_of(row, sheet);
  }
  return link;
}

}  // namespace

spec::ClusterSpec row_cluster(const RowFields& row, const CardSheet& sheet) {
  spec::ClusterSpec cluster;
  cluster.devices_per_node = static_cast<std::int64_t>(row.gpus_per_node.value_or(8));
  cluster.link = row_link(row, sheet, cluster.devices_per_node);
  if (sheet.card.fp8_flops > sheet.card.bf16_flops) cluster.device.fp8 = sheet.card.fp8_flops;
  const auto network = row.inter_bw ? base::BytesPerSecond(*row.inter_bw * 1e9) : sheet.network;
  cluster.network.kind = spec::NetworkKind::kInfiniband;
  cluster.network.bandwidth = network * static_cast<double>(cluster.devices_per_node);
  cluster.network.ports = cluster.devices_per_node;
  // Boards of eight say where their cards hang; cards in slots need two sockets for more than four.
  const bool slots = contains(lower_case(row.gpu_type), "pcie") || bridged_cards(row.gpu_type) > 0;
  if (contains_any(row.lower_notes, {"one numa", "single numa"}))
    cluster.numa_nodes = 1;
  else if (contains(row.lower_notes, "two numa") ||
           (slots && cluster.devices_per_node > kCardsPerSocket))
    cluster.numa_nodes = 2;
  // Rows that give virtual processors are containers, whose threads are not pinned.
  if (const auto threads = number_before(row.lower_notes, "vcpu")) {
    cluster.cpus = static_cast<std::int64_t>(std::min(*threads, kMostThreads));
    cluster.unpinned = true;
  }
  return cluster;
}

}  // namespace assay::plan
