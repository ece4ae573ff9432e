// The parts every computer has: operating system, processors, memory, NUMA nodes, network adapters,
// loaded drivers.
// Each function reads its part of the tree and adds a line to `notes` for what it could not learn.
#pragma once

#include <string>
#include <vector>

#include "machine/file_tree.h"
#include "machine/machine.h"

namespace assay::machine {

using Notes = std::vector<std::string>;

Os read_os(const FileTree& tree, Notes& notes);
std::string read_hostname(const FileTree& tree, Notes& notes);
// All of Cpu but quota_threads, which comes from the control groups.
Cpu read_cpu(const FileTree& tree, Notes& notes);
base::Bytes read_memory(const FileTree& tree, Notes& notes);
std::vector<NumaNode> read_numa_nodes(const FileTree& tree, Notes& notes);
// Drivers::modules.
std::map<std::string, std::string> read_modules(const FileTree& tree);

// RDMA ports (InfiniBand, RoCE, EFA) first, then Ethernet, each in name order. Interfaces without
// hardware (bridges, tunnels, loopback) are left out.
std::vector<Nic> find_nics(const FileTree& tree);

}  // namespace assay::machine
