// Clusters and collectives for the tests of src/plan.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plan/network/network.h"
#include "spec/load.h"

namespace assay::plan::testing {

inline constexpr double kGb = 1e9;
inline constexpr std::int64_t kLargeMessage = std::int64_t{8} << 30;  // bytes

inline spec::ClusterSpec preset_cluster(const std::string& name) {
  const auto loaded = spec::load(name);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
  return std::get<spec::ClusterSpec>(loaded->spec);
}

// One node of `devices`; `fp8` devices are Hopper.
inline spec::ClusterSpec one_node(std::int64_t devices, spec::LinkKind kind, double bandwidth_gb,
                                  bool fp8 = true) {
  spec::ClusterSpec cluster;
  cluster.devices_per_node = devices;
  cluster.link.kind = kind;
  cluster.link.bandwidth = base::BytesPerSecond(bandwidth_gb * kGb);
  if (fp8) cluster.device.fp8 = base::FlopsPerSecond(1e15);
  return cluster;
}

inline spec::ClusterSpec with_network(spec::ClusterSpec cluster, std::int64_t nodes,
                                      double bandwidth_gb,
                                      spec::NetworkKind kind = spec::NetworkKind::kInfiniband) {
  cluster.nodes = nodes;
  cluster.network.kind = kind;
  cluster.network.bandwidth = base::BytesPerSecond(bandwidth_gb * kGb);
  return cluster;
}

inline Network network_of(const spec::ClusterSpec& cluster,
                          const NetworkConstants& constants = {}) {
  auto network = Network::of(cluster, constants);
  EXPECT_TRUE(network.has_value()) << network.error().line();
  return *network;
}

inline step::Collective collective(step::CollectiveKind kind, std::int64_t bytes) {
  return {.kind = kind, .type = step::Dtype::kFp8, .elements = bytes};
}

}  // namespace assay::plan::testing
