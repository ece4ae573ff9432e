// Secrets in what is kept of a working tree (git.h): files that are there to hold them are left
// out, and in all others the lines that a known shape gives away are blanked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

// `.env`, `id_rsa`, `server.pem`: by name.
bool is_secret_file(std::string_view path);

// The difference with the secrets in added lines replaced; it has as many lines as before and still
// applies. Names the files in `left_out`. Only shapes that nothing else has, for a difference is
// full of digests and data that look random.
std::string without_secrets_in_diff(std::string diff, std::vector<std::string>& left_out);

}  // namespace assay::lineage
