// Whether the eBPF collector can work here, for `assay tracers`: what is missing and how to get it,
// or how it will work.
#pragma once

#include <string>

#include "observe/collect/process/collector.h"

namespace assay::collect {

Preflight ebpf_preflight();

// What prevents it from working, as far as can be determined without loading a program: for a
// collector that is about to load one. Empty: nothing.
std::string ebpf_obstacle();

}  // namespace assay::collect
