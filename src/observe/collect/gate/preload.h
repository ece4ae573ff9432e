// The default collector: the shim inside the command, the gate around it.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "observe/collect/process/collector.h"

namespace assay::collect {

std::unique_ptr<Collector> make_preload_collector(const std::filesystem::path& log);
Preflight preload_preflight();

// One of our libraries: beside the program or in ../lib/assay. Empty if it is not there.
std::filesystem::path library_beside(std::string_view name);
std::filesystem::path shim_library();

}  // namespace assay::collect
