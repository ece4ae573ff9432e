// Amounts against 128-bit integers; dates against the calendar.
#include "base/money.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace assay::base {
namespace {

constexpr Currency kUsd{};
constexpr Currency kEur{{'E', 'U', 'R'}};
constexpr Date kDay{2026, 8, 14};
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

Money usd(std::int64_t micros, Date date = kDay) {
  return {micros, kUsd, date};
}

TEST(Date, ParsesAsPreciseAsWritten) {
  EXPECT_EQ(parse_date("2026"), (Date{2026, 0, 0}));
  EXPECT_EQ(parse_date("2026-08"), (Date{2026, 8, 0}));
  EXPECT_EQ(parse_date("2026-08-14"), kDay);
  EXPECT_EQ(parse_date("2024-02-29"), (Date{2024, 2, 29}));
}

TEST(Date, RefusesEverythingElse) {
  for (const char* text : {"",
                           "26",
                           "0000",
                           "20266",
                           "2026-",
                           "2026-8",
                           "2026-08-",
                           "2026-08-1",
                           "2026-00",
                           "2026-13",
                           "2026-08-00",
                           "2026-04-31",
                           "2025-02-29",
                           "1900-02-29",
                           "2026/08/14",
                           "2026-08-14 ",
                           " 2026",
                           "-026",
                           "2026-08-14T00:00",
                           "2026-0a",
                           "202a",
                           "2026-08/14",
                           "2026108-14"}) {
    EXPECT_FALSE(parse_date(text)) << text;
  }
  EXPECT_EQ(parse_date("2025-02-29").error().line(),
            "'2025-02-29' is not a date: there is no such day; expected YYYY, YYYY-MM or "
            "YYYY-MM-DD, for example 2026-08-14");
}

RC_GTEST_PROP(Date, EveryDayReadsBack, ()) {
  const std::chrono::sys_days day(std::chrono::days(*rc::gen::inRange(-700'000, 2'900'000)));
  const std::chrono::year_month_day ymd(day);
  const Date date{static_cast<int>(ymd.year()),
                  static_cast<int>(static_cast<unsigned>(ymd.month())),
                  static_cast<int>(static_cast<unsigned>(ymd.day()))};
  RC_ASSERT(parse_date(to_text(date)) == date);
}

TEST(Date, OrdersByTheEarliestDay) {
  EXPECT_LT(*parse_date("2026"), *parse_date("2026-01"));
  EXPECT_LT(*parse_date("2026-07-31"), *parse_date("2026-08"));
}

TEST(Money, ParsesExactly) {
  EXPECT_EQ(parse_money("31.92 USD", kDay), usd(31'920'000));
  EXPECT_EQ(parse_money("0.000001USD", kDay), usd(1));
  EXPECT_EQ(parse_money("1EUR", kDay), Money(1'000'000, kEur, kDay));
  EXPECT_EQ(parse_money("2.5000000 EUR", kDay), Money(2'500'000, kEur, kDay));
  EXPECT_EQ(parse_money("9223372036854.775807 USD", kDay), usd(kLargest));
  for (const char* text :
       {"", "31.92", "$31.92", "USD 31.92", "31.92 usd", "31.92 US", "31.92 USDX", "-1 USD",
        "1,000 USD", "0.0000001 USD", "9223372036854.775808 USD", "1e3 USD", "31.92  USD",
        "nan USD", "31.92 USD "}) {
    EXPECT_FALSE(parse_money(text, kDay)) << text;
  }
  EXPECT_EQ(parse_money("31.92", kDay).error().line(),
            "'31.92' is not an amount of money: it has no currency; expected an amount and its "
            "currency, for example 31.92 USD");
}

TEST(Money, Text) {
  EXPECT_EQ(to_text(usd(31'920'000)), "$31.92");
  EXPECT_EQ(to_text(usd(0)), "$0.00");
  EXPECT_EQ(to_text(usd(2'500'000)), "$2.50");
  EXPECT_EQ(to_text(usd(1'234'567'890'000)), "$1,234,567.89");
  EXPECT_EQ(to_text(usd(12'345)), "$0.012345");
  EXPECT_EQ(to_text(usd(1'000'100)), "$1.0001");
  EXPECT_EQ(to_text(usd(-500'000)), "-$0.50");
  EXPECT_EQ(to_text(Money(31'920'000, kEur, kDay)), "31.92 EUR");
  EXPECT_EQ(to_text(Money(-31'920'000, kEur, kDay)), "-31.92 EUR");
  EXPECT_EQ(to_text(usd(kSmallest)), "-$9,223,372,036,854.775808");
}

RC_GTEST_PROP(Money, TextReadsBackWithoutItsCommas, ()) {
  const Money amount(*rc::gen::inRange<std::int64_t>(0, kLargest), kEur, kDay);
  std::string text = to_text(amount);
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  RC_ASSERT(parse_money(text, kDay) == amount);
}

TEST(Money, AddsWithinOneCurrencyAndKeepsTheOlderDate) {
  const Date older{2025, 3, 0};
  EXPECT_EQ(add(usd(1), usd(2, older)), usd(3, older));
  EXPECT_EQ(add(usd(1, older), usd(2)), usd(3, older));
  EXPECT_EQ(add(Money(), usd(2)), usd(2));         // an initial zero does not affect the date
  EXPECT_EQ(add(usd(2), usd(1, {})), usd(3, {}));  // an undated price does
  EXPECT_EQ(add(usd(1), Money(1, kEur, kDay)).error().line(),
            "cannot add USD and EUR: no exchange rate is assumed; give all prices in one currency");
  EXPECT_FALSE(add(usd(kLargest), usd(1)));
  EXPECT_FALSE(add(usd(kSmallest), usd(-1)));
}

RC_GTEST_PROP(Money, AdditionIsExactOrRefused, (std::int64_t a, std::int64_t b)) {
  __extension__ using Wide = __int128;
  const Wide sum = static_cast<Wide>(a) + b;
  const auto added = add(usd(a), usd(b));
  RC_ASSERT(added.has_value() == (sum >= kSmallest && sum <= kLargest));
  if (added) RC_ASSERT(added->micros() == static_cast<std::int64_t>(sum));
}

TEST(Money, Scales) {
  EXPECT_EQ(scale(usd(3), 0.5), usd(2));  // 1.5 is rounded away from zero
  EXPECT_EQ(scale(usd(-3), 0.5), usd(-2));
  EXPECT_EQ(scale(usd(kLargest), 1.0), usd(kLargest));
  EXPECT_EQ(scale(usd(kSmallest), 1.0), usd(kSmallest));
  EXPECT_FALSE(scale(usd(kLargest), 1.0000001));
  EXPECT_FALSE(scale(usd(kSmallest), -1.0));
  EXPECT_FALSE(scale(usd(1), std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(scale(usd(0), std::numeric_limits<double>::quiet_NaN()));
}

RC_GTEST_PROP(Money, ScalingByAWholeNumberIsExact, ()) {
  const auto micros = *rc::gen::inRange<std::int64_t>(-1'000'000'000'000, 1'000'000'000'000);
  const auto factor = *rc::gen::inRange<std::int64_t>(-100'000, 100'000);
  RC_ASSERT(scale(usd(micros), static_cast<double>(factor)) == usd(micros * factor));
}

TEST(Money, CostOfTime) {
  const Money per_hour = usd(3'000'000);
  EXPECT_EQ(cost(per_hour, Seconds(3600)), per_hour);
  EXPECT_EQ(cost(per_hour, Seconds(1200)), usd(1'000'000));  // a third of an hour, and no less
  EXPECT_EQ(cost(per_hour, Seconds(0)), usd(0));
  EXPECT_FALSE(cost(per_hour, Seconds(std::numeric_limits<double>::infinity())));
}

}  // namespace
}  // namespace assay::base
