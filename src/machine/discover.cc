#include "machine/discover.h"

#include "machine/cgroup.h"
#include "machine/file_tree.h"
#include "machine/gpu.h"
#include "machine/host.h"

namespace assay::machine {

Machine discover(const DiscoverOptions& options) {
  const FileTree tree(options.root);
  Machine machine;
  machine.hostname = read_hostname(tree, machine.notes);
  machine.os = read_os(tree, machine.notes);
  machine.cpu = read_cpu(tree, machine.notes);
  machine.memory = read_memory(tree, machine.notes);
  machine.numa_nodes = read_numa_nodes(tree, machine.notes);

  const CgroupLimits limits = read_cgroup_limits(tree);
  machine.cpu.quota_threads = limits.cpus;
  // Version 1 writes "no limit" as a number larger than any memory.
  if (limits.memory && (machine.memory.count() == 0 || *limits.memory < machine.memory)) {
    machine.memory_limit = limits.memory;
  }

  machine.nics = find_nics(tree);
  machine.drivers.modules = read_modules(tree);
  find_gpus(tree, options.nvml_library, machine);
  return machine;
}

}  // namespace assay::machine
