// The default collector: the shim inside the command's processes, the gate around them.
#pragma once

#include <filesystem>
#include <memory>

#include "observe/collect/process/collector.h"

namespace assay::collect {

std::unique_ptr<Collector> make_preload_collector(const std::filesystem::path& log);
Preflight preload_preflight();

}  // namespace assay::collect
