// The alphabet in which byte-level vocabularies spell bytes: one printable character per byte.
// Printable Latin-1 characters stand for themselves; the other bytes, in order, are U+0100 and up.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::data {

// The bytes of a spelling; nothing if it has a character outside the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

std::string spelling_of_bytes(std::string_view bytes);

}  // namespace assay::data
