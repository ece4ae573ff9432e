// GPUs: what the driver says (NVML) joined on the bus id with what the PCI bus says (sysfs).
#pragma once

#include <string>

#include "machine/file_tree.h"
#include "machine/machine.h"

namespace assay::machine {

// Fills gpu_source, gpus, gpu_links and the driver versions; reads numa_nodes and drivers.modules.
void find_gpus(const FileTree& tree, const std::string& nvml_library, Machine& machine);

}  // namespace assay::machine
