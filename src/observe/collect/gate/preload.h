// The default collector: the shim inside the command's processes, the gate around them.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "observe/collect/process/collector.h"

namespace assay::collect {

std::unique_ptr<Collector> make_preload_collector(const std::filesystem::path& log);
Preflight preload_preflight();

// One of Assay's libraries, beside the program or in ../lib/assay; empty if there is none.
std::filesystem::path installed_library(std::string_view name);
std::filesystem::path shim_library();

}  // namespace assay::collect
