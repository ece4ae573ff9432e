// Rules of a cluster (its nodes against its network, the devices of a node against their link) and
// of prices.
#include <fmt/format.h>

#include <algorithm>

#include "base/suggestion.h"
#include "spec/presets.h"
#include "spec/rule_error.h"
#include "spec/rules.h"

namespace assay::spec {
namespace {

base::Result<void> check_no_link(const ClusterSpec& c, const RuleErrors& rule) {
  if (c.devices_per_node > 1) {
    return rule.broken(
        "cluster.link.kind",
        fmt::format("{} devices in a node, but no link between them", c.devices_per_node),
        "describe [cluster.link]");
  }
  if (c.link.bandwidth) {
    return rule.broken("cluster.link.bandwidth", "a bandwidth, but link.kind is none",
                       "set link.kind or remove it");
  }
  if (c.link.group) {
    return rule.broken("cluster.link.group", "a group, but link.kind is none",
                       "set link.kind or remove it");
  }
  return {};
}

base::Result<void> check_link(const ClusterSpec& c, const RuleErrors& rule) {
  if (c.link.kind == LinkKind::kNone) return check_no_link(c, rule);
  if (c.link.kind != LinkKind::kPcie && !c.link.bandwidth) {
    return rule.broken("cluster.link.bandwidth", "an NVLink without a bandwidth",
                       "set it, per device and direction");
  }
  const bool grouped = c.link.kind == LinkKind::kNvlinkGroups;
  if (grouped && !c.link.group) {
    return rule.broken("cluster.link.group", "NVLink groups of unknown size",
                       "set the number of devices in a group");
  }
  if (grouped && c.devices_per_node % *c.link.group != 0) {
    return rule.broken("cluster.link.group", fmt::format("{} devices do not form groups of {}",
                                                         c.devices_per_node, *c.link.group));
  }
  // Switches may connect the devices of several nodes.
  const bool domain = c.link.kind == LinkKind::kNvswitch && c.link.group &&
                      *c.link.group > c.devices_per_node && *c.link.group % c.devices_per_node == 0;
  if (!grouped && !domain && c.link.group) {
    return rule.broken("cluster.link.group", "only nvlink-groups have groups",
                       "remove it or change link.kind");
  }
  return {};
}

}  // namespace

base::Result<void> complete(ClusterSpec& c, const Value& document) {
  const RuleErrors rule(document);
  if (c.max_nodes == 0) c.max_nodes = c.nodes;
  if (c.nodes > c.max_nodes) {
    return rule.broken(
        "cluster.nodes",
        fmt::format("{} nodes, but at most {} are available together", c.nodes, c.max_nodes),
        "lower it, or raise cluster.max_nodes if that is wrong");
  }
  if (c.nodes > 1 && c.network.kind == NetworkKind::kNone) {
    return rule.broken("cluster.network.kind", fmt::format("{} nodes without a network", c.nodes),
                       "describe [cluster.network]");
  }
  if (c.network.kind == NetworkKind::kNone && (c.network.bandwidth || c.network.ports)) {
    const char* key = c.network.bandwidth ? "cluster.network.bandwidth" : "cluster.network.ports";
    return rule.broken(key, "is set, but network.kind is none", "set network.kind or remove it");
  }
  if (c.network.kind != NetworkKind::kNone && !c.network.bandwidth) {
    return rule.broken("cluster.network.bandwidth", "a network without a bandwidth",
                       "set it, per node and direction");
  }
  return check_link(c, rule);
}

base::Result<void> complete(PriceSpec& price, const Value& row, const std::string& path) {
  const RuleErrors rule(row, path);
  const auto devices = preset_names(Kind::kDevice);
  if (std::find(devices.begin(), devices.end(), price.device) == devices.end()) {
    return rule.broken("device", fmt::format("no device preset '{}'", price.device),
                       base::suggestion(price.device, devices));
  }
  const PriceRange& range = price.per_hour;
  if (range.low.currency() != range.high.currency()) {
    return rule.broken("per_hour", "a range in two currencies", "use one");
  }
  if (range.low.micros() <= 0) {
    return rule.broken("per_hour", "must be greater than 0");
  }
  if (range.low.micros() > range.high.micros()) {
    return rule.broken("per_hour",
                       fmt::format("the range runs from {} down to {}", base::to_text(range.low),
                                   base::to_text(range.high)),
                       "write the lower price first");
  }
  return {};
}

}  // namespace assay::spec
