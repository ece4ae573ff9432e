// Where the program may keep its files, and how much space the disk of a folder still has.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace assay::base {

// This user's folder for caches: $XDG_CACHE_HOME/assay, else ~/.cache/assay. Empty if neither
// XDG_CACHE_HOME nor HOME is an absolute path. Nothing is created.
std::filesystem::path user_cache_folder();

// What this user can still write to the disk of a file or folder.
Result<Bytes> free_space(const std::filesystem::path& path);
// The same of an open file; errors name `where`.
Result<Bytes> free_space(int fd, const std::string& where);

// Fails if what is needed is more than what is free, which the error says of `where`. Passes if the
// file system does not tell what is free.
Result<void> check_free_space(const Result<Bytes>& free, Bytes needed, const std::string& where);

}  // namespace assay::base
