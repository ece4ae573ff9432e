// Reading and writing whole files, with actionable errors.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace assay::base {

// Whether the path may be a pipe, as in `assay … <(command)` and for /dev/stdin. A pipe without a
// writer reads as empty.
enum class Pipes { kRefuse, kRead };

// Reads a whole regular file, or standard input if `path` is "-". Directories and devices are
// refused rather than waited for; more than `limit` bytes is an error, not a truncation.
Result<std::string> read_file(const std::filesystem::path& path, Bytes limit,
                              Pipes pipes = Pipes::kRefuse);

// Opens a regular file for reading. Anything else is refused without waiting for it.
Result<UniqueFd> open_regular(const std::filesystem::path& path);

// fstat; fails if the descriptor is not a regular file. Errors name `where`.
Result<struct stat> regular_status(int fd, const std::string& where);

// Reads up to data.size() bytes of an open file from `offset` on, without moving its position;
// fewer only at the end of the file. Errors name `where`.
Result<std::size_t> read_at(int fd, const std::string& where, std::uint64_t offset,
                            std::span<std::byte> data);

// Writes all of `text`, or returns false and sets errno.
bool write_all(int fd, std::string_view text);

// Overwrites the file at the path, which may also be a pipe or a device.
Result<void> write_file(const std::filesystem::path& path, std::string_view text);

// Writes a new file and renames it to the path when complete: readers never see half of it, and
// those that have the old file open or mapped keep that. The new file gets `mode`, less the umask:
// 0666 for files that users ask for by name, as other programs do.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text,
                          mode_t mode = 0600);

// Writes a result to the file that the user names for it, as with -o FILE. A regular file appears
// or is replaced, with its mode and group, once its new content is complete, so that a failure
// leaves what was there. Written in place are pipes, devices and links such as /dev/stdout, and
// files that a new one cannot stand in for: those of others, with several names, mounted, or in a
// folder that may not be written to.
Result<void> write_output(const std::filesystem::path& path, std::string_view text);
// Whether that is possible as far as can be told without writing: before long work whose result
// goes there. Errors name `where`.
Result<void> check_output(const std::filesystem::path& path, const std::string& where);

}  // namespace assay::base
