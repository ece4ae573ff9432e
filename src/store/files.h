// The store's files before SQLite sees them: the directory, its .gitignore and the private, empty
// database file. Every function may be killed half-way and run again.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "store/location.h"

namespace assay::store {

// `.assay` (0700) and a .gitignore that hides it from git. Keeps what is already there.
base::Result<void> make_directory(const Location& location);

// An empty file with mode 0600 whatever the umask is. Keeps one that is already there.
base::Result<void> make_private_file(const std::filesystem::path& path);

// Exists from before the database's empty file is made until it has its tables: without it, an
// empty database is one that lost its content.
std::filesystem::path creation_mark(const Location& location);

// The directory, the mark if there is no database yet, and the database's file.
base::Result<void> make_files(const Location& location);

// Fails unless `path` is a regular file that this user can trust: the user owns it, or it is in a
// store shared with a group that the user is in (shared.h), or the user is root.
base::Result<void> check_file(const std::filesystem::path& path);

// Removes the permissions of other users from the database and the files SQLite keeps beside it.
enum class Privacy {
  kAlreadyPrivate,  // it already was private
  kMadePrivate,     // permissions were removed
  kUnsupported,     // the file system does not keep modes (FAT, some network shares)
};
Privacy make_private(const std::filesystem::path& database);

// Whether several machines may have mounted this file system. The write-ahead log must not be used
// there, because it needs memory shared by all processes that use the file.
base::Result<bool> is_shared_between_machines(const std::filesystem::path& path);
bool is_shared_between_machines(std::int64_t file_system_magic);  // statfs(2), f_type

// Waits until the file's contents are on disk.
base::Result<void> sync_file(const std::filesystem::path& path);

}  // namespace assay::store
