// The well-formed byte sequences of RFC 3629.
#include "base/utf8.h"

#include "base/check.h"

namespace assay::base {

Utf8Char first_utf8_char(std::string_view text) {
  ASSAY_CHECK(!text.empty(), "an empty text has no first character");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const Utf8Char invalid{.code_point = lead, .size = 1, .valid = false};
  if (lead < 0x80) return {.code_point = lead, .size = 1, .valid = true};

  // The smallest code point that needs this length: anything below it is an overlong form.
  std::size_t size = 0;
  char32_t smallest = 0;
  char32_t code_point = 0;
  if ((lead & 0xE0) == 0xC0) {
    size = 2, smallest = 0x80, code_point = lead & 0x1F;
  } else if ((lead & 0xF0) == 0xE0) {
    size = 3, smallest = 0x800, code_point = lead & 0x0F;
  } else if ((lead & 0xF8) == 0xF0) {
    size = 4, smallest = 0x10000, code_point = lead & 0x07;
  } else {
    return invalid;
  }
  if (text.size() < size) return invalid;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return invalid;
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < smallest || code_point > 0x10FFFF || surrogate) return invalid;
  return {.code_point = code_point, .size = size, .valid = true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = first_utf8_char(text);
    if (!c.valid) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

}  // namespace assay::base
