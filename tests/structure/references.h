// Checks that what comments and documentation refer to exists: files of this repository that a
// comment of a source, script or src/LAYERS names; files, functions and the targets of links that
// Markdown pages name; and that the files in the walks of ARCHITECTURE.md have the functions named
// beside them, and are as many as it says.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::structure {

// One line per dangling reference, "src/base/x.cc:12: names y.h, which does not exist".
std::vector<std::string> dangling_references(const std::filesystem::path& root);

}  // namespace assay::structure
