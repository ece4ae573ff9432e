// The working directory and the store of its project, for verbs.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace assay::cli {

base::Result<std::filesystem::path> working_directory();

// The store at or above the working directory; the error says how to create one.
base::Result<store::Store> open_store();

// Where a verb keeps its results: the given folder, or a new one in the project, or else in the
// folder for temporary files. It is not created.
base::Result<std::filesystem::path> kept_folder(const std::string& verb, const std::string& asked);

// "3" -> 3; a usage error that names the option otherwise.
base::Result<std::int64_t> count_option(const std::string& verb, const std::string& option,
                                        const std::string& text);

}  // namespace assay::cli
