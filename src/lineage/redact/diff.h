// Secrets in the stored diff of a working tree (source/git.h): files that exist to hold secrets are
// left out, and in all others lines with recognised secrets are redacted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

// `.env`, `id_rsa`, `server.pem`: by name.
bool is_secret_file(std::string_view path);

// The diff with the secrets in added lines replaced; it keeps its number of lines and still
// applies. Names the changed files in `left_out`. Only unambiguous patterns, because diffs are full
// of digests and data that look random.
std::string redact_diff(std::string diff, std::vector<std::string>& left_out);

}  // namespace assay::lineage
