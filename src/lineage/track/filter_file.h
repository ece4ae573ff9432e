// A project's own rules about its lineage: the file `.assayignore` in its root, in the manner of
// .gitignore. A line is a pattern (glob.h) of files to leave out, or after "!" to keep; "#" begins
// a comment.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "lineage/track/filter.h"

namespace assay::lineage {

inline constexpr const char* kFilterFile = ".assayignore";

// In the order of the file; none if there is no such file.
base::Result<std::vector<Filter::Choice>> read_filter_file(const std::filesystem::path& project);

}  // namespace assay::lineage
