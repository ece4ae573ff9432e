// A file's next content, written beside it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace assay::base {

// Writes a new file beside the path, with all of the text, to be renamed to the path. Nothing is
// left of one that cannot be completed. It gets `mode`, less the umask.
Result<std::filesystem::path> write_draft(const std::filesystem::path& path, std::string_view text,
                                          mode_t mode);

}  // namespace assay::base
