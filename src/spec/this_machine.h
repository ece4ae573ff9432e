// The preset `this-machine`: a cluster of one node, described by what src/machine finds.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "spec/cluster.h"
#include "spec/value.h"

namespace assay::spec {

// A document with [cluster], valid for any machine. The device's rates come from the device preset
// of the same name, if there is one; unknown values stay unset. A machine without GPUs is one CPU
// device; if there are several GPU models, only the first model's GPUs are used.
Value cluster_document(const machine::Machine& machine);

// The same for the machine this runs on.
Value this_machine_document();

// The links between a machine's GPUs, described by the one LinkKind that fits.
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
