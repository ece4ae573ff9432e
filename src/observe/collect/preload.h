// The default collector: the shim inside the command, the gate around it.
#pragma once

#include <filesystem>
#include <memory>

#include "observe/collect/collector.h"

namespace assay::collect {

std::unique_ptr<Collector> make_preload_collector(const std::filesystem::path& log);
Preflight preload_preflight();

// The shim's library: beside the program or in ../lib/assay. Empty if it is not there.
std::filesystem::path shim_library();

}  // namespace assay::collect
