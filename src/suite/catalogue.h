// Finds suites: those in bench/suites/, which are compiled into the program, and the user's files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/embedded_file.h"
#include "suite/suite.h"

namespace assay::suite {

std::vector<std::string> suite_names();

// By name, or by path (with a "/" or ending in .toml). The error for an unknown name suggests one.
base::Result<Suite> find_suite(const std::string& reference);

// The generated table (cmake/EmbedFiles.cmake).
std::span<const base::EmbeddedFile> embedded_files();

}  // namespace assay::suite
