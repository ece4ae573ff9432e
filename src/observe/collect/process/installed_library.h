// Assay's libraries that are preloaded into the observed command: the shims.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::collect {

// One of these libraries: beside the program, in ../lib/assay as `make install` puts it, or in the
// folder above, as a build tree has it. Empty if there is none that can be preloaded.
std::filesystem::path installed_library(std::string_view name);
// Why installed_library() is empty: "libassay-shim.so is not beside the program".
std::string why_not_installed(std::string_view name);

}  // namespace assay::collect
