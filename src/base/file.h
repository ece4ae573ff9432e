// Reading whole files, with errors a person can act on.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace assay::base {

// The whole of a regular file, or of standard input when `path` is "-". Directories, devices and
// pipes are refused rather than waited on; more than `limit` bytes is an error, not a truncation.
Result<std::string> read_file(const std::filesystem::path& path, Bytes limit);

}  // namespace assay::base
