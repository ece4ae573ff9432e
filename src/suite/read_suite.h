// Finds and reads suites: those in bench/suites/, which are compiled into the program, and the
// user's files; from TOML to a Suite in which every name is resolved.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/embedded_file.h"
#include "base/result.h"
#include "suite/suite.h"

namespace assay::suite {

// The names of those compiled in.
std::vector<std::string> suite_names();

// By name, or by path (with a "/" or ending in .toml). The error for an unknown name suggests one.
base::Result<Suite> find_suite(const std::string& reference);

// `source` names the text in errors. Files of earlier versions, which call cases steps, are read
// too.
base::Result<Suite> read_suite(const std::string& text, const std::string& source);

// The generated table (cmake/EmbedFiles.cmake).
std::span<const base::EmbeddedFile> embedded_files();

}  // namespace assay::suite
