// Runs a recorded command again: the recorded arguments, no shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lineage/record/redirects.h"

namespace assay::lineage {

// Waits for it. Streams that `redirects` does not name: standard input is empty, both outputs go to
// `output_fd`. The exit code is a shell's: 127 when the program is not there, 126 when it cannot be
// run, 128+N for signal N.
int run_stage_command(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment,
                      const std::filesystem::path& directory,
                      const std::vector<Redirect>& redirects, int output_fd);

}  // namespace assay::lineage
