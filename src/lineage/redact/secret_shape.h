// Secrets that can be told by what they look like: known prefixes, web tokens, PEM blocks, the
// password of a URL, long random strings.
#pragma once

#include <string>
#include <string_view>

namespace assay::lineage {

// What a secret is replaced with. Nothing of it is left, not even its length.
inline constexpr std::string_view kRedacted = "[redacted]";

// The text with every secret that its shape gives away replaced, the rest as it was.
std::string without_shaped_secrets(std::string_view text);

// The same, but for random strings: only shapes that nothing else has.
std::string without_known_secrets(std::string_view text);

// Only blocks of -----BEGIN …-----; a block has spaces and newlines, so this goes before any
// splitting into words.
std::string without_pem(std::string_view text);

// A remote's URL without user and password; the user of ssh is kept, for it names no secret.
std::string without_credentials(std::string_view url);

// Letters of both cases and digits in the disorder that words and names never have. Digests of
// files and commits (hexadecimal) are no secrets and do not count.
bool looks_random(std::string_view text);

}  // namespace assay::lineage
