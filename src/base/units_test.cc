// Quantities as they are printed.
#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace assay::base {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(Quantity, ArithmeticKeepsItsUnit) {
  EXPECT_EQ(Bytes(3) + Bytes(4), Bytes(7));
  EXPECT_EQ(Bytes(3) * 4 - Bytes(2), Bytes(10));
  EXPECT_LT(Seconds(1), Seconds(2));
  EXPECT_DOUBLE_EQ(Bytes(1) / Bytes(4), 0.25);
  EXPECT_EQ(Bytes(900) / BytesPerSecond(450), Seconds(2));
  EXPECT_EQ(Flops(10) / FlopsPerSecond(5), Seconds(2));
  EXPECT_EQ(Bytes(10) / Seconds(5), BytesPerSecond(2));
}

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};

// What has another unit, or none, does not compile.
static_assert(Addable<Seconds, Seconds> && Addable<Bytes, Bytes>);
static_assert(!Addable<Seconds, Bytes> && !Addable<Bytes, Seconds>);
static_assert(!Addable<Flops, Seconds> && !Addable<FlopsPerSecond, BytesPerSecond>);
static_assert(!Addable<Seconds, double> && !Addable<double, Seconds>);
static_assert(Comparable<Bytes, Bytes> && !Comparable<Bytes, Seconds>);
static_assert(!Comparable<Bytes, std::int64_t> && !Comparable<Watts, double>);
static_assert(Divisible<Bytes, BytesPerSecond> && !Divisible<Bytes, FlopsPerSecond>);
static_assert(!Divisible<Flops, BytesPerSecond> && !Divisible<Watts, Seconds>);
static_assert(!std::is_convertible_v<double, Seconds> && !std::is_convertible_v<Seconds, double>);

TEST(BytesText, ThreeDigitsInPowersOf1024) {
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Bytes(7)), "7 B");
  EXPECT_EQ(to_text(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_text(Bytes(1024)), "1.00 KiB");
  EXPECT_EQ(to_text(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(to_text(Bytes(80 * kGiB)), "80.0 GiB");
  EXPECT_EQ(to_text(Bytes(141 * kGiB)), "141 GiB");
  EXPECT_EQ(to_text(Bytes(1000 * kGiB)), "1000 GiB");
  EXPECT_EQ(to_text(Bytes(1024 * kGiB - 1)), "1.00 TiB");
  EXPECT_EQ(to_text(Bytes(-3 * kGiB / 2)), "-1.50 GiB");
  EXPECT_EQ(to_text(Bytes(std::numeric_limits<std::int64_t>::min())), "-8.00 EiB");
}

TEST(RateText, PowersOf1000) {
  EXPECT_EQ(to_text(BytesPerSecond(4.8e12)), "4.80 TB/s");
  EXPECT_EQ(to_text(BytesPerSecond(999.6e9)), "1.00 TB/s");
  EXPECT_EQ(to_text(BytesPerSecond(0.5)), "0.500 B/s");
  EXPECT_EQ(to_text(FlopsPerSecond(989e12)), "989 TFLOP/s");
  EXPECT_EQ(to_text(Flops(6.02e23)), "602 ZFLOP");
  EXPECT_EQ(to_text(Watts(700)), "700 W");
  EXPECT_EQ(to_text(Watts(1200)), "1.20 kW");
  EXPECT_EQ(to_text(Watts(0)), "0 W");
}

TEST(SecondsText, FittingUnit) {
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
  EXPECT_EQ(to_text(Seconds(2.5e-7)), "250 ns");
  EXPECT_EQ(to_text(Seconds(1.5e-5)), "15.0 µs");
  EXPECT_EQ(to_text(Seconds(0.0123)), "12.3 ms");
  EXPECT_EQ(to_text(Seconds(59.9)), "59.9 s");
  EXPECT_EQ(to_text(Seconds(59.97)), "1.00 min");  // would read 60.0 s
  EXPECT_EQ(to_text(Seconds(90)), "1.50 min");
  EXPECT_EQ(to_text(Seconds(3599.9)), "1.00 h");
  EXPECT_EQ(to_text(Seconds(2.9 * 3600)), "2.90 h");
  EXPECT_EQ(to_text(Seconds(86390)), "1.00 d");
  EXPECT_EQ(to_text(Seconds(4000.0 * 86400)), "4000 d");
  EXPECT_EQ(to_text(Seconds(-0.25)), "-250 ms");
}

TEST(QuantityText, NamesWhatIsNotANumber) {
  EXPECT_EQ(to_text(Seconds(std::numeric_limits<double>::infinity())), "inf s");
  EXPECT_EQ(to_text(Seconds(-std::numeric_limits<double>::infinity())), "-inf s");
  EXPECT_EQ(to_text(FlopsPerSecond(std::numeric_limits<double>::quiet_NaN())), "nan FLOP/s");
  EXPECT_EQ(to_text(Seconds(1e30)), "1.16e+25 d");
  EXPECT_EQ(to_text(Watts(1e-5)), "1.00e-05 W");
}

TEST(Grouped, Thousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(8030261248), "8,030,261,248");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

RC_GTEST_PROP(Grouped, IsTheNumberWithACommaEveryThreeDigits, (std::int64_t value)) {
  std::string text = grouped(value);
  const std::size_t digits = text.size() - (value < 0 ? 1U : 0U);
  for (std::size_t i = 0; i < digits; ++i) {
    RC_ASSERT((text[text.size() - 1 - i] == ',') == (i % 4 == 3));
  }
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  RC_ASSERT(text == std::to_string(value));
}

TEST(ShortCount, AsPeopleSayIt) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(910), "910");
  EXPECT_EQ(short_count(1000), "1.00K");
  EXPECT_EQ(short_count(999'949), "1.00M");
  EXPECT_EQ(short_count(124'439'808), "124M");
  EXPECT_EQ(short_count(8'030'261'248), "8.03B");
  EXPECT_EQ(short_count(15'000'000'000'000), "15.0T");
  EXPECT_EQ(short_count(-1500), "-1.50K");
}

}  // namespace
}  // namespace assay::base
