// Decoding UTF-8 one character at a time; any bytes are accepted.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::base {

struct Utf8Char {
  char32_t code_point = 0;
  std::size_t size = 0;  // bytes taken; 1 when invalid
  bool valid = false;
};

// The first character of `text`, which must not be empty. Overlong forms, surrogates and values
// above U+10FFFF are invalid, so that every valid character has exactly one encoding.
Utf8Char first_utf8_char(std::string_view text);

// Whether every character is valid.
bool is_utf8(std::string_view text);

}  // namespace assay::base
