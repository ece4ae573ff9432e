// The suites of bench/suites/, compiled into the program, and suites of one's own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/embedded_file.h"
#include "suite/suite.h"

namespace assay::suite {

std::vector<std::string> suite_names();

// A name, or a path (with a "/" or ending in .toml). An unknown name is told with the nearest.
base::Result<Suite> find_suite(const std::string& reference);

// The generated table (cmake/EmbedFiles.cmake).
std::span<const base::EmbeddedFile> embedded_files();

}  // namespace assay::suite
