// Money with its currency and date: a price without a date is not a fact.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace assay::base {

// A calendar date as precise as its source: 2026, 2026-08 or 2026-08-14. Unknown parts are 0.
struct Date {
  int year = 0;
  int month = 0;
  int day = 0;

  // Orders by the earliest possible day.
  auto operator<=>(const Date&) const = default;
};

Result<Date> parse_date(std::string_view text);  // rejects days that do not exist
std::string to_text(Date date);

// Three capital letters as in ISO 4217, e.g. "USD"; whether the code is listed there is not
// checked.
struct Currency {
  std::array<char, 3> code = {'U', 'S', 'D'};
  auto operator<=>(const Currency&) const = default;
};

// An exact amount: millionths of the currency's unit in 64 bits (to about 9 trillion dollars).
class Money {
 public:
  constexpr Money() = default;
  constexpr Money(std::int64_t micros, Currency currency, Date as_of)
      : micros_(micros), currency_(currency), as_of_(as_of) {}

  [[nodiscard]] constexpr std::int64_t micros() const { return micros_; }
  [[nodiscard]] constexpr Currency currency() const { return currency_; }
  // The oldest price that went into this amount.
  [[nodiscard]] constexpr Date as_of() const { return as_of_; }
  [[nodiscard]] double units() const { return static_cast<double>(micros_) / 1e6; }

  bool operator==(const Money&) const = default;

 private:
  std::int64_t micros_ = 0;
  Currency currency_;
  Date as_of_;
};

// The sum has the older date. Different currencies, or overflow, are errors: no exchange rate is
// guessed.
Result<Money> add(Money a, Money b);
// Rounds to the nearest micro-unit; overflow or a factor that is not finite is an error.
Result<Money> scale(Money amount, double factor);
// The cost of `time` at `per_hour`.
Result<Money> cost(Money per_hour, Seconds time);

// "31.92 USD"; the currency is required; at most six decimals, so that nothing is rounded away.
Result<Money> parse_money(std::string_view text, Date as_of);
// "$31.92" for USD, "31.92 EUR" otherwise; cents, or more digits when the amount has them.
std::string to_text(Money amount);

}  // namespace assay::base
