// Options of known clients that take a secret without being named after one: `mysql -pX`,
// `curl -u user:X`, `openssl -passin pass:X`.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace assay::lineage {

// Which part of an option's value is secret.
enum class SecretPart {
  kWhole,
  kAfterColon,    // user:password; nothing if there is no colon
  kAfterComma,    // user,password
  kAfterPercent,  // user%password
  kAfterSlash,    // user/password@database
};

// The client whose name this word is, also with a path, or behind a quote or a bracket; else empty.
// What is returned lives for ever.
std::string_view known_client(std::string_view word);

struct SecretOption {
  SecretPart part = SecretPart::kWhole;
  // Where the value begins in the word; nothing: it is the next argument.
  std::optional<std::size_t> value;
};
// Whether this word is such an option of the client. `verb` is the subcommand that it was given, if
// one of its options depends on that.
std::optional<SecretOption> secret_option_of(std::string_view client, std::string_view verb,
                                             std::string_view word);

// Whether the word is a subcommand on which an option of the client depends.
bool is_verb_of(std::string_view client, std::string_view word);

}  // namespace assay::lineage
