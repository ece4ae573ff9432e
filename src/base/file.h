// Reading and writing whole files, with errors a person can act on.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace assay::base {

// Whether a pipe may stand at the path, as it does in `assay … <(command)` and at /dev/stdin. One
// without a writer reads as empty.
enum class Pipes { kRefuse, kRead };

// The whole of a regular file, or of standard input when `path` is "-". Directories and devices are
// refused rather than waited on; more than `limit` bytes is an error, not a truncation.
Result<std::string> read_file(const std::filesystem::path& path, Bytes limit,
                              Pipes pipes = Pipes::kRefuse);

// Opens a regular file for reading. Whatever else stands at the path is refused and not waited on.
Result<UniqueFd> open_regular(const std::filesystem::path& path);

// fstat, and an error if what is open is no regular file. Errors name `where`.
Result<struct stat> regular_status(int fd, const std::string& where);

// All of `text`, or false and errno.
bool write_all(int fd, std::string_view text);

// Overwrites what is at the path, which may be a pipe or a device.
Result<void> write_file(const std::filesystem::path& path, std::string_view text);

// Writes a new file and renames it to the path once it is complete: a reader never gets half of
// it, and one that has the old file open or mapped keeps that. `mode`, less the umask, is the new
// file's: what people ask for by name is 0666, as other programs write it.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text,
                          mode_t mode = 0600);

}  // namespace assay::base
