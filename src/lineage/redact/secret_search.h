// Whether a file contains secrets of a known form, and so must not be packed.
#pragma once

#include <filesystem>
#include <string_view>

namespace assay::lineage {

// Tokens, passwords in URLs, private keys.
bool contains_secret(std::string_view text);

// The same for a file. Of files larger than 1 MiB only text files are searched, and only their
// first 64 MiB: large binary files are data, to which the patterns do not apply. False for a file
// that cannot be read, which cannot be packed either.
bool file_contains_secret(const std::filesystem::path& path);

}  // namespace assay::lineage
