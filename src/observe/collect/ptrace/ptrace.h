// The ptrace collector: for machines where neither seccomp's listener nor eBPF may be used. The
// kernel stops a process before a path-class call and after it, so results are known, at the price
// of two stops. See path_call.h for what is understood, ptrace_loop.h for how.
#pragma once

#include <filesystem>
#include <memory>

#include "observe/collect/process/collector.h"

namespace assay::collect {

// `log` is made when the command is run.
std::unique_ptr<Collector> make_ptrace_collector(const std::filesystem::path& log);

Preflight ptrace_preflight();

}  // namespace assay::collect
