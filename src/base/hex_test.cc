#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace assay::base {
namespace {

TEST(Hex, WritesTwoDigitsForEachByte) {
  EXPECT_EQ(hex_text({}), "");
  EXPECT_EQ(hex_of(std::array<std::uint8_t, 4>{0x00, 0x0f, 0xa0, 0xff}), "000fa0ff");
  EXPECT_EQ(hex_of(std::array<char, 2>{'\x80', 'A'}), "8041");
}

TEST(Hex, ReadsDigitsOfEitherCase) {
  EXPECT_EQ(hex_digit('0'), 0);
  EXPECT_EQ(hex_digit('9'), 9);
  EXPECT_EQ(hex_digit('a'), 10);
  EXPECT_EQ(hex_digit('F'), 15);
  for (const char c : {'/', ':', '@', 'G', '`', 'g', ' ', '\0', '\xff'})
    EXPECT_EQ(hex_digit(c), -1);
}

TEST(Hex, RandomIdsDiffer) {
  const auto one = random_hex(16);
  const auto other = random_hex(16);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->size(), 32U);
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*one, *other);
}

}  // namespace
}  // namespace assay::base
