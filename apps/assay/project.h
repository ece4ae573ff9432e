// Where a verb stands: the working directory and the store of its project.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "store/store.h"

namespace assay::cli {

base::Result<std::filesystem::path> working_directory();

// The store at or above the working directory; an error that says how to make one if there is none.
base::Result<store::Store> open_store();

// Where a verb keeps what it measures: the folder that was asked for, or a new one in the project,
// or else among temporary files. It is not made.
base::Result<std::filesystem::path> kept_folder(const std::string& verb, const std::string& asked);

// "3" -> 3; a usage error that names the option otherwise.
base::Result<std::int64_t> count_option(const std::string& verb, const std::string& option,
                                        const std::string& text);

}  // namespace assay::cli
