// Every code point, and validity against another library's decoder.
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace assay::base {
namespace {

// An independent judge of well-formedness: nlohmann-json's own decoder.
bool json_accepts(const std::string& bytes) {
  try {
    static_cast<void>(nlohmann::json(bytes).dump());
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

std::string encoded(char32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointReadsBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    const std::string bytes = encoded(c);
    const Utf8Char read = first_utf8_char(bytes + "tail");
    if (c >= 0xD800 && c <= 0xDFFF) {
      ASSERT_FALSE(read.valid) << std::hex << static_cast<unsigned>(c);
      continue;
    }
    ASSERT_TRUE(read.valid) << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ(read.code_point, c);
    ASSERT_EQ(read.size, bytes.size());
  }
}

TEST(Utf8, EveryThreeByteStringIsJudgedAsByAnotherDecoder) {
  // The bytes at which the rules of RFC 3629 change.
  const unsigned edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2,
                            0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xF8, 0xFF};
  for (const unsigned a : edges) {
    for (const unsigned b : edges) {
      for (const unsigned c : edges) {
        for (const unsigned d : {0x41U, 0x80U, 0xBFU, 0xFFU}) {
          const std::string bytes = {static_cast<char>(a), static_cast<char>(b),
                                     static_cast<char>(c), static_cast<char>(d)};
          std::size_t at = 0;
          bool all_valid = true;
          while (at < bytes.size()) {
            const Utf8Char read = first_utf8_char(std::string_view(bytes).substr(at));
            all_valid &= read.valid;
            at += read.size;
          }
          ASSERT_EQ(at, bytes.size());
          ASSERT_EQ(all_valid, json_accepts(bytes))
              << std::hex << a << ' ' << b << ' ' << c << ' ' << d;
        }
      }
    }
  }
}

TEST(Utf8, AnInvalidByteIsTakenAlone) {
  const Utf8Char read = first_utf8_char("\xE2\x80");  // a truncated dash
  EXPECT_FALSE(read.valid);
  EXPECT_EQ(read.size, 1U);
  EXPECT_EQ(read.code_point, 0xE2U);
}

}  // namespace
}  // namespace assay::base
