// A run as `assay show` prints it.
#pragma once

#include <filesystem>
#include <string>

#include "cli/verb.h"
#include "store/run.h"

namespace assay::cli {

// Everything, in sections; at most `files` inputs and outputs each.
void print_run(const Session& session, const store::RunRecord& run,
               const std::filesystem::path& directory, std::size_t files);
// Why files were kept or left out.
void print_rules(const Session& session, const store::RunRecord& run,
                 const std::filesystem::path& directory, std::size_t files);

}  // namespace assay::cli
