// Secrets recognised by their form: known token prefixes, web tokens, PEM blocks, passwords in
// URLs, long random strings.
#pragma once

#include <string>
#include <string_view>

namespace assay::lineage {

// Replaces a secret. Nothing of it is kept, not even its length.
inline constexpr std::string_view kRedacted = "[redacted]";

// The text with every recognised secret replaced.
std::string redact_patterns(std::string_view text);

// The same without random strings: only unambiguous patterns.
std::string redact_known_patterns(std::string_view text);

// Replaces only -----BEGIN …----- blocks. They contain spaces and newlines, so call this before
// splitting a text at those.
std::string redact_pem(std::string_view text);

// Whether a private key begins in it (PEM, PGP, SSH, PuTTY). Certificates and public keys are no
// secrets.
bool has_private_key(std::string_view text);

// A remote's URL without user and password; the user of ssh is kept, as it is not a secret.
std::string strip_credentials(std::string_view url);

// Whether letters of both cases and digits alternate as they never do in words and names. Digests
// of files and commits (hexadecimal) are not secrets and do not count.
bool looks_random(std::string_view text);

}  // namespace assay::lineage
