// Quantities as they are printed and parsed: what is accepted, what is refused and how.
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

// Mixing units, or omitting one, does not compile.
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
  EXPECT_EQ(counted(0, "run"), "0 runs");
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(1234, "run"), "1,234 runs");
  EXPECT_EQ(counted(2, "hash", "hashes"), "2 hashes");
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

TEST(ShortCount, AsPeopleWriteIt) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(910), "910");
  EXPECT_EQ(short_count(1000), "1.00K");
  EXPECT_EQ(short_count(999'949), "1.00M");
  EXPECT_EQ(short_count(124'439'808), "124M");
  EXPECT_EQ(short_count(8'030'261'248), "8.03B");
  EXPECT_EQ(short_count(15'000'000'000'000), "15.0T");
  EXPECT_EQ(short_count(-1500), "-1.50K");
}

constexpr std::int64_t kLargestCount = std::numeric_limits<std::int64_t>::max();

TEST(ParseBytes, Units) {
  EXPECT_EQ(parse_bytes("4096"), Bytes(4096));
  EXPECT_EQ(parse_bytes("0"), Bytes(0));
  EXPECT_EQ(parse_bytes("12 B"), Bytes(12));
  EXPECT_EQ(parse_bytes("1KB"), Bytes(1000));
  EXPECT_EQ(parse_bytes("1kB"), Bytes(1000));
  EXPECT_EQ(parse_bytes("1KiB"), Bytes(1024));
  EXPECT_EQ(parse_bytes("80GiB"), Bytes(85'899'345'920));
  EXPECT_EQ(parse_bytes("80 GB"), Bytes(80'000'000'000));
  EXPECT_EQ(parse_bytes("2TiB"), Bytes(2'199'023'255'552));
  EXPECT_EQ(parse_bytes("3TB"), Bytes(3'000'000'000'000));
}

TEST(ParseBytes, FractionsAreExact) {
  EXPECT_EQ(parse_bytes("1.1KB"), Bytes(1100));  // 1100.0000000000002 in doubles
  EXPECT_EQ(parse_bytes("0.5 KiB"), Bytes(512));
  EXPECT_EQ(parse_bytes("16.000"), Bytes(16));
  EXPECT_EQ(parse_bytes("1e3"), Bytes(1000));
  EXPECT_EQ(parse_bytes("2.5e-1KiB"), Bytes(256));
  EXPECT_EQ(parse_bytes("9223372036854775807"), Bytes(kLargestCount));
  EXPECT_EQ(parse_bytes("0.000000000000000000000000001e27"), Bytes(1));
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text : {"",
                           " ",
                           "GiB",
                           "-1",
                           "+1",
                           "1.",
                           ".5",
                           "1..5",
                           "1,5",
                           "80 gib",
                           "80gb",
                           "80 G",
                           "80  GiB",
                           "80 GiB ",
                           " 80GiB",
                           "80GiBx",
                           "80 ",
                           "0x10",
                           "nan",
                           "inf",
                           "1e",
                           "8 Gib",
                           "1.1",
                           "0.1KiB",
                           "9223372036854775808",
                           "99999999999999999999999",
                           "8388608TiB",
                           "1e999999999999999999999",
                           "1e-999999999999999999999",
                           "1GiB\n",
                           "１GiB"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text << " was read as " << parsed->count();
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_EQ(parsed.error().where, "");
  }
  EXPECT_FALSE(parse_bytes(std::string_view("1\0", 2)));
}

TEST(ParseBytes, ErrorsNameTheProblemAndWhatWasExpected) {
  const std::string expected =
      "; expected a number and one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB, for example 80GiB";
  EXPECT_EQ(parse_bytes("80gb").error().line(),
            "'80gb' is not a size: unknown unit 'gb'" + expected);
  EXPECT_EQ(parse_bytes("").error().line(), "'' is not a size: it is empty" + expected);
  EXPECT_EQ(parse_bytes("-1").error().line(), "'-1' is not a size: it is negative" + expected);
  EXPECT_EQ(parse_bytes("many").error().line(),
            "'many' is not a size: it does not start with a number" + expected);
  EXPECT_EQ(parse_bytes("0.1 B").error().line(),
            "'0.1 B' is not a size: it is not a whole number of bytes" + expected);
  EXPECT_EQ(parse_bytes("1e30").error().line(),
            "'1e30' is not a size: it does not fit in 64 bits" + expected);
}

RC_GTEST_PROP(ParseBytes, ReadsEveryWholeCount, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(0, kLargestCount);
  RC_ASSERT(parse_bytes(std::to_string(count)) == Bytes(count));
  const std::int64_t small = count % 8'000'000;
  RC_ASSERT(parse_bytes(std::to_string(small) + "TiB") == Bytes(small << 40));
}

RC_GTEST_PROP(ParseBytes, ReadsItsOwnTextToThreeDigits, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50);
  const auto read = parse_bytes(to_text(Bytes(count)));
  // "1.23 KiB" is no whole number of bytes; what is read must be near.
  if (!read) {
    RC_ASSERT(read.error().what.ends_with("it is not a whole number of bytes"));
    RC_DISCARD("not a whole number of bytes");
  }
  RC_ASSERT(std::abs(static_cast<double>(read->count() - count)) <=
            0.00501 * static_cast<double>(count));
}

TEST(ParseRate, BytesAndBits) {
  EXPECT_EQ(parse_bytes_per_second("450GB/s"), BytesPerSecond(450e9));
  EXPECT_EQ(parse_bytes_per_second("400Gb/s"), BytesPerSecond(50e9));
  EXPECT_EQ(parse_bytes_per_second("400Gbps"), BytesPerSecond(50e9));
  EXPECT_EQ(parse_bytes_per_second("400 Gbit/s"), BytesPerSecond(50e9));
  EXPECT_EQ(parse_bytes_per_second("1 GiB/s"), BytesPerSecond(1073741824.0));
  EXPECT_EQ(parse_bytes_per_second("4.8 TB/s"), BytesPerSecond(4.8e12));
  for (const char* text : {"450", "450GB", "450 gb/s", "450GBps", "-1GB/s", "1e400GB/s",
                           "1e308TB/s", "infGB/s", "nan GB/s", "450GB/s/s", "/s"}) {
    EXPECT_FALSE(parse_bytes_per_second(text)) << text;
  }
}

TEST(ParseRate, Flops) {
  EXPECT_EQ(parse_flops_per_second("989 TFLOP/s"), FlopsPerSecond(989e12));
  EXPECT_EQ(parse_flops_per_second("989 TFLOPS"), FlopsPerSecond(989e12));
  EXPECT_EQ(parse_flops_per_second("66.9 TFLOP/s"), FlopsPerSecond(66.9e12));
  EXPECT_EQ(parse_flops_per_second("1.979PFLOPs"), FlopsPerSecond(1.979e15));
  EXPECT_EQ(parse_flops_per_second("5 FLOP/s"), FlopsPerSecond(5));
  for (const char* text : {"989", "989T", "989 TFLOP", "989 tflops", "989 TOPS"}) {
    EXPECT_FALSE(parse_flops_per_second(text)) << text;
  }
}

TEST(ParseSeconds, Units) {
  EXPECT_EQ(parse_seconds("1.5h"), Seconds(5400));
  EXPECT_EQ(parse_seconds("90 s"), Seconds(90));
  EXPECT_EQ(parse_seconds("250ms"), Seconds(0.25));
  EXPECT_EQ(parse_seconds("2 min"), Seconds(120));
  EXPECT_EQ(parse_seconds("3 d"), Seconds(259200));
  EXPECT_DOUBLE_EQ(parse_seconds("5us")->count(), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("5\u00b5s")->count(), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("5\u03bcs")->count(), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("5ns")->count(), 5e-9);
  for (const char* text : {"90", "2m", "2 mins", "1h30min", "1:30", "1 H", "1 month"}) {
    EXPECT_FALSE(parse_seconds(text)) << text;
  }
  EXPECT_EQ(
      parse_seconds("90").error().line(),
      "'90' is not a duration: it has no unit; expected a number and one of d, h, min, s, ms, "
      "us, ns, for example 1.5h");
}

TEST(ParseWatts, Units) {
  EXPECT_EQ(parse_watts("700 W"), Watts(700));
  EXPECT_EQ(parse_watts("1.2 kW"), Watts(1200));
  EXPECT_EQ(parse_watts("2 MW"), Watts(2e6));
  EXPECT_EQ(parse_watts("500mW"), Watts(0.5));
  EXPECT_FALSE(parse_watts("700"));
  EXPECT_FALSE(parse_watts("700w"));
}

// A magnitude between 1e-9 and 1e18, evenly in its exponent.
double magnitude() {
  const auto exponent = *rc::gen::inRange(-9, 18);
  const auto digits = *rc::gen::inRange(1000, 10000);
  return digits / 1000.0 * std::pow(10.0, exponent);
}

RC_GTEST_PROP(ParseQuantity, ReadsItsOwnTextToThreeDigits, ()) {
  const double value = magnitude();
  const auto near = [&](double read) { return std::abs(read - value) <= 0.00501 * value; };
  RC_ASSERT(near(parse_seconds(to_text(Seconds(value)))->count()));
  RC_ASSERT(near(parse_bytes_per_second(to_text(BytesPerSecond(value / 1e3)))->count() * 1e3));
  RC_ASSERT(near(parse_flops_per_second(to_text(FlopsPerSecond(value)))->count()));
  RC_ASSERT(near(parse_watts(to_text(Watts(value / 1e12)))->count() * 1e12));
}

RC_GTEST_PROP(ParseQuantity, SurvivesAnyBytes, (const std::string& text)) {
  // Nothing random is a quantity with a unit; the point is that none of it is undefined.
  RC_ASSERT(!parse_seconds(text + "!"));
  RC_ASSERT(!parse_bytes(text + "!"));
}

}  // namespace
}  // namespace assay::base
