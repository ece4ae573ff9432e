// ClusterSpec: nodes, their devices, and what connects them. DeviceSpec: one accelerator, or a CPU
// node treated as one device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace assay::spec {

enum class DeviceKind { kCpu, kGpu };

struct DeviceSpec {
  DeviceKind kind = DeviceKind::kGpu;
  std::string name;  // as the driver reports it
  // Unknown values are unset; a rate is also unset if the device has no such unit.
  std::optional<base::Bytes> memory;
  std::optional<base::BytesPerSecond> memory_bandwidth;
  // Peak dense rates.
  std::optional<base::FlopsPerSecond> bf16;
  std::optional<base::FlopsPerSecond> fp16;
  std::optional<base::FlopsPerSecond> fp8;
  std::optional<base::FlopsPerSecond> tf32;
  std::optional<base::FlopsPerSecond> fp32;
  std::optional<base::Watts> power;

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

enum class LinkKind {
  kNone,          // one device per node
  kNvswitch,      // through switches: any pair at the device's full bandwidth
  kNvlinkMesh,    // direct links to every other device; the bandwidth is the sum over all peers
  kNvlinkGroups,  // NVLink inside groups of `group`, PCIe between them
  kPcie,
};

struct LinkSpec {
  LinkKind kind = LinkKind::kNone;
  std::optional<base::BytesPerSecond> bandwidth;  // per device and direction
  std::optional<std::int64_t> group;              // devices per group; kNvswitch: may span nodes
  std::optional<base::BytesPerSecond> pcie;       // per device and direction

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

enum class NetworkKind { kNone, kInfiniband, kEfa, kEthernet };

struct NetworkSpec {
  NetworkKind kind = NetworkKind::kNone;
  std::optional<base::BytesPerSecond> bandwidth;  // per node and direction
  std::optional<std::int64_t> ports;              // per node

  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

struct ClusterSpec {
  std::int64_t nodes = 1;
  std::int64_t max_nodes = 0;  // available together; default: nodes
  std::int64_t devices_per_node = 0;
  std::optional<std::int64_t> cpus;        // per node, as the provider counts them
  std::optional<std::int64_t> numa_nodes;  // across which a node's devices are distributed
  bool unpinned = false;  // host threads run on any socket, as in containers of GPU clouds
  std::optional<base::Bytes> host_memory;  // per node
  DeviceSpec device;
  LinkSpec link;
  NetworkSpec network;

  [[nodiscard]] std::int64_t devices() const { return nodes * devices_per_node; }
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

}  // namespace assay::spec
