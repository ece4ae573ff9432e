// Checks every #include of a source tree against its src/LAYERS.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::structure {

// One line per problem, "src/base/x.cc:12: …"; empty when the tree keeps to its layers. Problems of
// LAYERS itself (unknown modules, a module that uses one listed below it) are reported the same
// way.
std::vector<std::string> problems(const std::filesystem::path& root);

}  // namespace assay::structure
