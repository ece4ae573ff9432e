// Files that a user names for a result, as with -o FILE.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace assay::base {

// Writes the text to the path. A regular file appears or is replaced, with its mode and group, once
// its new content is complete, so that a failure leaves what was there. Written in place are pipes,
// devices and links such as /dev/stdout, and files that a new one cannot stand in for: those of
// others, with several names, mounted, or in a folder that may not be written to.
Result<void> write_output(const std::filesystem::path& path, std::string_view text);

}  // namespace assay::base
