// The collector inside the kernel: BPF programs see reads, new files and processes; the gate stops
// what changes existing files, because only a stopped process lets us hash a file before it is
// overwritten. For root, or CAP_BPF with CAP_PERFMON.
#pragma once

#include <filesystem>
#include <memory>

#include "observe/collect/process/collector.h"

namespace assay::collect {

std::unique_ptr<Collector> make_ebpf_collector(const std::filesystem::path& log);
Preflight ebpf_preflight();

}  // namespace assay::collect
