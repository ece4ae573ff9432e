// The alphabet in which byte-level vocabularies spell bytes: a printable character for each, so
// that a vocabulary is a file of text. Printable Latin-1 stands for itself; the others, in order,
// are U+0100 and on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::data {

// The bytes that a token of such a vocabulary spells; nothing if it has a character that is not of
// the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace assay::data
