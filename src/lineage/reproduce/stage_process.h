// Runs a recorded command again: the recorded arguments, no shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lineage/record/redirects.h"

namespace assay::lineage {

// Runs the command and waits for it. If `redirects` does not name them, standard input is empty and
// both outputs go to `output_fd`. Returns a shell's exit code: 127 when the program does not exist,
// 126 when it cannot be run, 128+N for signal N.
int run_stage_command(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment,
                      const std::filesystem::path& directory,
                      const std::vector<Redirect>& redirects, int output_fd);

}  // namespace assay::lineage
