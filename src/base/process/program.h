// Finds programs: this one, files installed next to it, and programs in PATH.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace assay::base {

// Used if PATH is not set.
inline constexpr std::string_view kDefaultSearchPath = "/usr/local/bin:/usr/bin:/bin";

// The path of the running program; empty if /proc is not mounted.
std::filesystem::path own_program();

// What a file is wanted for.
enum class FileUse { kExecute, kRead };
// The first file `name` that can be used so in these folders, which are relative to the running
// program's folder.
std::optional<std::filesystem::path> beside_own_program(
    std::string_view name, std::initializer_list<std::string_view> folders,
    FileUse use = FileUse::kExecute);

// PATH of this process.
std::string current_search_path();
// Finds a program as a shell in `directory` (empty: the working directory) does: a name with a
// slash is a path; otherwise the first executable file in the folders of `search_path`, where an
// empty entry means the directory itself. A relative result is relative to `directory`.
std::optional<std::string> find_program(const std::string& name, std::string_view search_path,
                                        const std::filesystem::path& directory = {});

// Replaces this process by the program whose path is the first argument, with the same environment.
// Returns only on failure.
Error replace_process(const std::vector<std::string>& arguments);
// Starts this process's program again in it, with these arguments (main's argv) and the environment
// as it is now. Returns only on failure.
Error restart_program(char* const* arguments);

}  // namespace assay::base
