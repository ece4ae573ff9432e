// Network adapters from sysfs: RDMA devices (InfiniBand, RoCE, EFA) and Ethernet interfaces.
#pragma once

#include <vector>

#include "machine/file_tree.h"
#include "machine/machine.h"

namespace assay::machine {

// RDMA ports first, then Ethernet, each in name order. Interfaces without hardware (bridges,
// tunnels, loopback) are left out.
std::vector<Nic> find_nics(const FileTree& tree);

}  // namespace assay::machine
