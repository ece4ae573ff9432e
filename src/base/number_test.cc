#include "base/number.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>

namespace assay::base {
namespace {

TEST(ParseNumber, ReadsWholeNumbers) {
  EXPECT_EQ(parse_number<std::int64_t>("0"), 0);
  EXPECT_EQ(parse_number<std::int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<std::int64_t>("007"), 7);
  EXPECT_EQ(parse_number<std::int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<std::int64_t>("ff", 16), 255);
}

TEST(ParseNumber, RefusesEverythingElse) {
  for (const char* text : {"", " ", "+1", " 1", "1 ", "1\n", "1x", "0x1", "--1", "1.0", "1e3",
                           "9223372036854775808", "one"}) {
    EXPECT_EQ(parse_number<std::int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<std::int64_t>(std::string_view()), std::nullopt);
  EXPECT_EQ(parse_number<std::int64_t>(std::string_view("1\0", 2)), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
}

TEST(ParseNumber, ReadsFiniteFloatingPoint) {
  EXPECT_EQ(parse_number<double>("0.25"), 0.25);
  EXPECT_EQ(parse_number<double>("-1e3"), -1000.0);
  EXPECT_EQ(parse_number<double>("1e3", std::chars_format::fixed), std::nullopt);
  for (const char* text : {"", "inf", "-inf", "nan", "1e999", "+1.5", "1.5 ", "0.5s"}) {
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(ParseNumber, ReadsWhatWasWritten, (std::int64_t number)) {
  RC_ASSERT(parse_number<std::int64_t>(std::to_string(number)) == number);
}

}  // namespace
}  // namespace assay::base
