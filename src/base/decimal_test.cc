// Exactness, and refusal of numbers that do not fit.
#include "base/decimal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include <limits>

namespace assay::base {
namespace {

TEST(DecimalSize, TakesTheNumberAndLeavesTheRest) {
  EXPECT_EQ(decimal_size("12.5GiB"), 4U);
  EXPECT_EQ(decimal_size("12 GiB"), 2U);
  EXPECT_EQ(decimal_size("1e5x"), 3U);
  EXPECT_EQ(decimal_size("1E+5"), 4U);
  EXPECT_EQ(decimal_size("1EUR"), 1U);
  EXPECT_EQ(decimal_size("1e-"), 1U);
  for (const char* text : {"", ".5", "5.", "5.x", "-1", "+1", " 1", "e5"}) {
    EXPECT_EQ(decimal_size(text), 0U) << text;
  }
}

TEST(DecimalTimes, RefusesWhatDoesNotFit) {
  EXPECT_EQ(decimal_times("9223372036854775807", 1), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(decimal_times("9223372036854775808", 1).error(), DecimalError::kTooLarge);
  EXPECT_EQ(decimal_times("18446744073709551616", 1).error(), DecimalError::kTooLarge);
  EXPECT_EQ(decimal_times("340282366920938463463374607431768211457", 1).error(),  // 2^128 + 1
            DecimalError::kTooLarge);
  EXPECT_EQ(decimal_times("1e19", 1).error(), DecimalError::kTooLarge);
  EXPECT_EQ(decimal_times("1e99999999999999999999", 1).error(), DecimalError::kTooLarge);
  EXPECT_EQ(decimal_times("0e99999999999999999999", 1), 0);
  EXPECT_EQ(decimal_times("0.5", 1).error(), DecimalError::kNotWhole);
  EXPECT_EQ(decimal_times("1e-99999999999999999999", 10).error(), DecimalError::kNotWhole);
  EXPECT_EQ(decimal_times("18446744073709551615", 18446744073709551615U).error(),
            DecimalError::kTooLarge);
}

RC_GTEST_PROP(DecimalTimes, IsExact, ()) {
  const auto whole = *rc::gen::inRange<std::int64_t>(0, 9'000'000'000'000);
  const auto micros = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  const std::string text = fmt::format("{}.{:06}", whole, micros);
  RC_ASSERT(decimal_times(text, 1'000'000) == whole * 1'000'000 + micros);
  RC_ASSERT(decimal_times(text + "000e0", 1'000'000) == whole * 1'000'000 + micros);
  RC_ASSERT(decimal_times(text + "e6", 1) == whole * 1'000'000 + micros);
}

TEST(WithoutTrailingZeros, LeavesWholeNumbersAlone) {
  EXPECT_EQ(without_trailing_zeros("1.500"), "1.5");
  EXPECT_EQ(without_trailing_zeros("2.0"), "2");
  EXPECT_EQ(without_trailing_zeros("-0.10"), "-0.1");
  EXPECT_EQ(without_trailing_zeros("20"), "20");
  EXPECT_EQ(without_trailing_zeros(""), "");
}

}  // namespace
}  // namespace assay::base
