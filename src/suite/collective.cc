#include "suite/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "base/number.h"
#include "base/text.h"
#include "plan/network/network.h"
#include "spec/load.h"

namespace assay::suite {
namespace {

using step::CollectiveKind;

constexpr std::array kCollectives = {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllGather, CollectiveKind::kBroadcast,
                                     CollectiveKind::kAllToAll,  CollectiveKind::kSendReceive};

base::Error no_collective(std::string_view text) {
  return base::usage_error("collective",
                           fmt::format("'{}' is not a collective", base::printable(text)),
                           "for example all_reduce 1GB p4d-24xlarge 32 cluster.nodes=4");
}

}  // namespace

base::Result<base::Json> collective_json(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string name;
  std::string size;
  std::string cluster_name;
  std::string ranks_text;
  std::vector<std::string> changes;
  words >> name >> size >> cluster_name;
  for (std::string word; words >> word;) {
    if (word.starts_with("cluster.extends=")) {
      return base::fail(no_collective(text));  // the cluster is the third word
    }
    if (word.find('=') != std::string::npos) {
      changes.push_back(word);
    } else if (ranks_text.empty() && changes.empty()) {
      ranks_text = word;
    } else {
      return base::fail(no_collective(text));
    }
  }
  const auto* const kind =
      std::find_if(kCollectives.begin(), kCollectives.end(),
                   [&](CollectiveKind each) { return step::to_text(each) == name; });
  const auto bytes = base::parse_bytes(size);
  if (kind == kCollectives.end() || !bytes || cluster_name.empty()) {
    return base::fail(no_collective(text));
  }
  ASSAY_TRY(const spec::Loaded loaded, spec::load(cluster_name, {.overrides = changes}));
  const auto* cluster = std::get_if<spec::ClusterSpec>(&loaded.spec);
  if (cluster == nullptr) return base::fail(no_collective(text));
  ASSAY_TRY(const plan::Network network, plan::Network::of(*cluster));
  const std::int64_t devices = cluster->nodes * network.devices_per_node();
  std::int64_t ranks = devices;
  if (!ranks_text.empty()) {
    const auto given = base::parse_number<std::int64_t>(ranks_text);
    if (!given) return base::fail(no_collective(text));
    ranks = *given;
  }
  if (ranks < 2 || ranks > devices || bytes->count() <= 0) return base::fail(no_collective(text));
  const plan::CollectiveTime time =
      network.time(*kind, static_cast<double>(bytes->count()), network.group(ranks));
  return base::Json{{"seconds", time.total.count()},
                    {"bus_gb_s", time.bus_bandwidth.count() / 1e9},
                    {"algorithm", plan::to_text(time.algorithm)},
                    {"ranks", ranks}};
}

}  // namespace assay::suite
