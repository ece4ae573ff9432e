// Describes the links between a machine's GPUs by the one LinkKind that fits. Internal to src/spec.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "spec/cluster.h"

namespace assay::spec {

struct NodeLinks {
  LinkKind kind = LinkKind::kPcie;
  std::int64_t group = 0;    // devices per group, for kNvlinkGroups
  std::int64_t nvlinks = 0;  // of one device, to all peers; 0 for kPcie
};

// For two or more GPUs, given by their indices in Machine::gpus. If links are not the same for
// every device (a ring, a chain, groups of two sizes), the result is PCIe: slower than reality,
// never faster.
NodeLinks node_links(const machine::Machine& machine, const std::vector<int>& gpus);

}  // namespace assay::spec
