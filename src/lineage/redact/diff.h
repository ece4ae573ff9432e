// Secrets in the stored diff of a working tree (source/git.h): files that exist to hold secrets are
// left out, and in all others lines with recognised secrets are redacted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

// `.env`, `id_rsa`, `server.pem`: by name.
bool is_secret_file(std::string_view path);

// Which lines of a diff are searched. kAll is for diffs that leave the machine; such a diff may no
// longer apply, because its removed and context lines must match the commit.
enum class DiffLines { kAdded, kAll };

// The diff with the secrets in these lines replaced; its number of lines stays, and with kAdded it
// still applies. Adds the changed files to `left_out`. Only unambiguous patterns are used, because
// diffs are full of digests and data that look random; with kAll also whole lines of base64, which
// may be the middle of a key, and everything in files for which is_secret_file() holds.
std::string redact_diff(std::string diff, std::vector<std::string>& left_out,
                        DiffLines lines = DiffLines::kAdded);

}  // namespace assay::lineage
