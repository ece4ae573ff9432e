// Runs a recorded command again: the words as they were, no shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lineage/record/redirects.h"

namespace assay::lineage {

// Waits for it. Where `redirects` says nothing, standard input is empty and both outputs go to
// `output_fd`. The exit code is a shell's: 127 when the program is not there, 126 when it cannot be
// run, 128+N for signal N.
int run_words(const std::vector<std::string>& words, const std::vector<std::string>& environment,
              const std::filesystem::path& directory, const std::vector<Redirect>& redirects,
              int output_fd);

}  // namespace assay::lineage
