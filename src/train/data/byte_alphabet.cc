#include "train/data/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace assay::data {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::size_t kLetters = 0x100 + 68;  // 68 bytes do not stand for themselves

constexpr std::array<int, kLetters> kByteOfLetter = [] {
  std::array<int, kLetters> bytes{};
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[stands_for_itself(byte) ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return bytes;
}();

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const base::Utf8Char letter = base::first_utf8_char(spelling);
    if (!letter.valid || letter.code_point >= kLetters || kByteOfLetter[letter.code_point] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kByteOfLetter[letter.code_point]);
    spelling.remove_prefix(letter.size);
  }
  return bytes;
}

}  // namespace assay::data
