#include "train/data/byte_spelling.h"

#include <array>

#include "base/utf8.h"

namespace assay::data {
namespace {

constexpr bool is_own_spelling(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::size_t kLetters = 0x100 + 68;  // 68 bytes have another spelling

constexpr std::array<int, kLetters> kByteOfLetter = [] {
  std::array<int, kLetters> bytes{};
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[is_own_spelling(byte) ? static_cast<std::size_t>(byte) : next++] = byte;
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

std::string spelling_of_bytes(std::string_view bytes) {
  static const auto kLetterOfByte = [] {
    std::array<std::string, 256> letters;
    for (std::size_t letter = 0; letter < kLetters; ++letter) {
      if (kByteOfLetter[letter] < 0) continue;
      // Below U+0800: one byte of UTF-8, or two.
      std::string& text = letters[static_cast<std::size_t>(kByteOfLetter[letter])];
      if (letter < 0x80) {
        text = {static_cast<char>(letter)};
      } else {
        text = {static_cast<char>(0xc0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3f))};
      }
    }
    return letters;
  }();
  std::string spelling;
  for (const char byte : bytes) spelling += kLetterOfByte[static_cast<unsigned char>(byte)];
  return spelling;
}

}  // namespace assay::data
