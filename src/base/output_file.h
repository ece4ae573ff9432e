// Files that a user names for a result, as with -o FILE.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace assay::base {

// Writes the text to the path. A regular file appears or is replaced once its new content is
// complete, so that a failure leaves what was there. Pipes, devices and links such as /dev/stdout
// are written to as they are, and so is a file in a folder that only allows that.
Result<void> write_output(const std::filesystem::path& path, std::string_view text);

}  // namespace assay::base
