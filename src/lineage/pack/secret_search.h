// Whether a file contains secrets of a known form, and so must not be packed.
#pragma once

#include <filesystem>
#include <string_view>

namespace assay::lineage {

// Tokens, passwords in URLs, private keys.
bool contains_secret(std::string_view text);

// The same for a file. Files of more than 1 MiB are searched if they are text, the first 64 MiB of
// them: large binary files are data, which no pattern for tokens fits. One that cannot be read has
// none that could be packed.
bool file_contains_secret(const std::filesystem::path& path);

}  // namespace assay::lineage
