// The eBPF collector: BPF programs report reads, new files and processes; the gate stops calls that
// change existing files, because a file can be hashed before it is overwritten only while the
// process is stopped. For root, or CAP_BPF with CAP_PERFMON.
#pragma once

#include <filesystem>
#include <memory>

#include "observe/collect/process/collector.h"

namespace assay::collect {

std::unique_ptr<Collector> make_ebpf_collector(const std::filesystem::path& log);

}  // namespace assay::collect
