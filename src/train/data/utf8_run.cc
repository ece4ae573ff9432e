#include "train/data/utf8_run.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "base/utf8.h"

namespace assay::data {
namespace {

constexpr std::uint64_t kNotAscii = 0x8080808080808080U;

// Whether `tail` is an incomplete character: tries the smallest and largest continuation bytes.
bool is_incomplete_character(std::string_view tail) {
  for (const char filler : {'\x80', '\xbf'}) {
    std::string whole(tail);
    while (whole.size() < 4) {
      whole += filler;
      if (base::first_utf8_char(whole).valid) return true;
    }
  }
  return false;
}

}  // namespace

// ASCII is skipped eight bytes at a time.
Utf8Run utf8_run(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & kNotAscii) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const base::Utf8Char next = base::first_utf8_char(text.substr(at));
    if (!next.valid) {
      const std::string_view tail = text.substr(at);
      return {at, tail.size() < 4 && is_incomplete_character(tail)};
    }
    at += next.size;
  }
  return {at, false};
}

}  // namespace assay::data
