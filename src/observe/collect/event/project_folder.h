// The folder of the project that the command runs in. What lies there counts, even below a system
// folder (wire/system_folders.h). Set once, before the command starts: a collector's process
// records one run.
#pragma once

#include <string>

namespace assay::collect {

void set_project_folder(std::string folder);
// Without a slash at its end; empty: none.
const std::string& project_folder();

// Whether look-ups and listings at this absolute path are not reported.
bool is_unreported(const std::string& path);

}  // namespace assay::collect
