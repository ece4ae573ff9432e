// Exact amounts of money and the dates that prices carry.
#include "base/money.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/decimal.h"

namespace assay::base {
namespace {

constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kMicrosPerCent = 10'000;

std::string_view code_of(const Currency& currency) {
  return {currency.code.data(), currency.code.size()};
}

Result<Money> out_of_range(std::string_view what) {
  return fail(usage_error({}, fmt::format("{} is too large for an amount of money", what),
                          "amounts go to about 9 trillion"));
}

// An accumulator starts as Money(): a zero of no date must not make the sum's date unknown.
Date older(const Money& a, const Money& b) {
  const auto neutral = [](const Money& m) { return m.micros() == 0 && m.as_of() == Date{}; };
  if (neutral(a)) return b.as_of();
  if (neutral(b)) return a.as_of();
  return std::min(a.as_of(), b.as_of());
}

// long double, because a double cannot hold every 64-bit amount.
Result<Money> scaled(Money amount, long double factor) {
  if (!std::isfinite(factor)) {
    return fail(usage_error({},
                            "an amount of money cannot be multiplied by a number that is not "
                            "finite"));
  }
  const long double micros = std::round(static_cast<long double>(amount.micros()) * factor);
  constexpr long double kLimit = 9223372036854775808.0L;  // 2^63
  if (!(micros >= -kLimit && micros < kLimit)) return out_of_range("the product");
  return Money(static_cast<std::int64_t>(micros), amount.currency(), amount.as_of());
}

// `count` digits at `at`, or -1.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

Result<Date> parse_date(std::string_view text) {
  const auto refused = [&](std::string_view why) {
    return fail(usage_error({}, fmt::format("'{}' is not a date: {}", text, why),
                            "expected YYYY, YYYY-MM or YYYY-MM-DD, for example 2026-08-14"));
  };
  const bool has_month = text.size() >= 7 && text[4] == '-';
  const bool has_day = text.size() == 10 && has_month && text[7] == '-';
  const Date date{.year = digits(text, 0, 4),
                  .month = has_month ? digits(text, 5, 2) : 0,
                  .day = has_day ? digits(text, 8, 2) : 0};
  const std::size_t size = has_day ? 10 : has_month ? 7 : 4;
  if (text.size() != size || date.year < 0 || date.month < 0 || date.day < 0) {
    return refused("its format is wrong");
  }
  if (date.year == 0) return refused("there is no year 0");
  // Parts that were not given are filled with 1, which always exists.
  const std::chrono::year_month_day day{
      std::chrono::year(date.year),
      std::chrono::month(static_cast<unsigned>(has_month ? date.month : 1)),
      std::chrono::day(static_cast<unsigned>(has_day ? date.day : 1))};
  if (!day.ok()) return refused(has_day ? "there is no such day" : "there is no such month");
  return date;
}

std::string to_text(Date date) {
  std::string text = fmt::format("{:04}", date.year);
  if (date.month != 0) text += fmt::format("-{:02}", date.month);
  if (date.month != 0 && date.day != 0) text += fmt::format("-{:02}", date.day);
  return text;
}

Result<Money> add(Money a, Money b) {
  if (a.currency() != b.currency()) {
    return fail(usage_error({},
                            fmt::format("cannot add {} and {}: no exchange rate is assumed",
                                        code_of(a.currency()), code_of(b.currency())),
                            "give all prices in one currency"));
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.micros(), b.micros(), &sum)) return out_of_range("the sum");
  return Money(sum, a.currency(), older(a, b));
}

Result<Money> scale(Money amount, double factor) {
  return scaled(amount, factor);
}

Result<Money> cost(Money per_hour, Seconds time) {
  return scaled(per_hour, static_cast<long double>(time.count()) / 3600);
}

Result<Money> parse_money(std::string_view text, Date as_of) {
  const auto refused = [&](std::string_view why) {
    return fail(usage_error({}, fmt::format("'{}' is not an amount of money: {}", text, why),
                            "expected an amount and its currency, for example 31.92 USD"));
  };
  if (text.starts_with('-')) return refused("it is negative");
  const std::size_t size = decimal_size(text);
  if (size == 0) return refused("it does not start with a number");
  const std::string_view number = text.substr(0, size);
  if (number.find_first_of("eE") != std::string_view::npos) return refused("it has an exponent");

  std::string_view code = text.substr(size);
  if (code.starts_with(' ')) code.remove_prefix(1);
  if (code.empty()) return refused("it has no currency");
  const auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (code.size() != 3 || !std::all_of(code.begin(), code.end(), capital)) {
    return refused("its currency is not a three-letter code such as USD");
  }

  const auto micros = decimal_times(number, kMicros);
  if (!micros) {
    return refused(micros.error() == DecimalError::kTooLarge ? "it is too large"
                                                             : "it has more than six decimals");
  }
  return Money(*micros, Currency{{code[0], code[1], code[2]}}, as_of);
}

std::string to_text(Money amount) {
  // The remainder of a negative number is negative, so no step here can overflow.
  const std::int64_t whole = amount.micros() / kMicros;
  const std::int64_t rest = std::abs(amount.micros() % kMicros);
  std::string digits_text = grouped(whole < 0 ? -whole : whole);
  if (rest % kMicrosPerCent == 0) {
    digits_text += fmt::format(".{:02}", rest / kMicrosPerCent);
  } else {
    digits_text += fmt::format(".{:06}", rest);
    digits_text.erase(digits_text.find_last_not_of('0') + 1);
  }
  const std::string_view sign = amount.micros() < 0 ? "-" : "";
  if (amount.currency() == Currency{}) return fmt::format("{}${}", sign, digits_text);
  return fmt::format("{}{} {}", sign, digits_text, code_of(amount.currency()));
}

}  // namespace assay::base
