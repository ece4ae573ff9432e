// The ptrace collector, for machines that allow neither seccomp's listener nor eBPF. The kernel
// stops a process before and after a path-class call, so results are known, at the cost of two
// stops. See stopped_call.h for the calls and trace_loop.h for the loop.
#pragma once

#include <filesystem>
#include <memory>

#include "observe/collect/process/collector.h"

namespace assay::collect {

// `log` is created when the command is run.
std::unique_ptr<Collector> make_ptrace_collector(const std::filesystem::path& log);

Preflight ptrace_preflight();

}  // namespace assay::collect
