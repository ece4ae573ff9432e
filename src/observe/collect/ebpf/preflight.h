// Whether the eBPF collector can work here, for `assay tracers`: what is missing and how to get it,
// or how it will work.
#pragma once

#include "observe/collect/process/collector.h"

namespace assay::collect {

Preflight ebpf_preflight();

}  // namespace assay::collect
