#include "spec/field_types.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace assay::spec {

base::Error type_mismatch(std::string_view expected, const Value& got) {
  return base::usage_error("", fmt::format("expected {}, got {}", expected, got.shown()));
}

base::Result<std::int64_t> FieldType<std::int64_t>::parse(const Value& value) {
  if (const auto* number = value.get<std::int64_t>()) return *number;
  // 1e30 is a whole number all the same.
  constexpr double kBeyond = 0x1p63;
  if (const auto* number = value.get<double>(); number != nullptr && std::isfinite(*number)) {
    using Limits = std::numeric_limits<std::int64_t>;
    if (*number >= kBeyond) {
      return base::fail(type_mismatch(
          fmt::format("{} of at most {}", expected(), base::grouped(Limits::max())), value));
    }
    if (*number < -kBeyond) {
      return base::fail(type_mismatch(
          fmt::format("{} of at least {}", expected(), base::grouped(Limits::min())), value));
    }
  }
  return base::fail(type_mismatch(expected(), value));
}

base::Result<double> FieldType<double>::parse(const Value& value) {
  if (const auto* number = value.get<std::int64_t>()) return static_cast<double>(*number);
  if (const auto* number = value.get<double>(); number != nullptr && std::isfinite(*number)) {
    return *number;
  }
  if (value.get<double>() != nullptr) {
    return base::fail(base::usage_error("", "expected a finite number"));
  }
  return base::fail(type_mismatch(expected(), value));
}

std::string FieldType<double>::text(double value) {
  return fmt::format("{}", value);
}

base::Result<bool> FieldType<bool>::parse(const Value& value) {
  if (const auto* flag = value.get<bool>()) return *flag;
  return base::fail(type_mismatch(expected(), value));
}

base::Result<std::string> FieldType<std::string>::parse(const Value& value) {
  const auto* text = value.get<std::string>();
  if (text == nullptr) return base::fail(type_mismatch(expected(), value));
  if (text->empty()) return base::fail(base::usage_error("", "expected a non-empty string"));
  return *text;
}

base::Result<base::Date> FieldType<base::Date>::parse(const Value& value) {
  // A year alone may be written without quotes.
  if (const auto* year = value.get<std::int64_t>()) return base::parse_date(std::to_string(*year));
  if (const auto* text = value.get<std::string>()) return base::parse_date(*text);
  // TOML has a year 0, which parse_date() refuses.
  if (const auto* date = value.get<base::Date>()) return base::parse_date(base::to_text(*date));
  return base::fail(type_mismatch(expected(), value));
}

base::Result<PriceRange> FieldType<PriceRange>::parse(const Value& value) {
  // The date stands in its own key; schema.cc stamps it on once the whole price is read.
  if (const auto* text = value.get<std::string>()) {
    ASSAY_TRY(const base::Money amount, base::parse_money(*text, {}));
    return PriceRange{amount, amount};
  }
  const auto* pair = value.get<Value::Array>();
  if (pair == nullptr || pair->size() != 2) return base::fail(type_mismatch(expected(), value));
  const auto* low = (*pair)[0].get<std::string>();
  const auto* high = (*pair)[1].get<std::string>();
  if (low == nullptr || high == nullptr) return base::fail(type_mismatch(expected(), value));
  ASSAY_TRY(const base::Money from, base::parse_money(*low, {}));
  ASSAY_TRY(const base::Money to, base::parse_money(*high, {}));
  return PriceRange{from, to};
}

base::Json FieldType<PriceRange>::json(const PriceRange& value) {
  const auto code = value.low.currency().code;
  return {{"low", value.low.units()},
          {"high", value.high.units()},
          {"currency", std::string(code.begin(), code.end())}};
}

namespace {

// The parser and the wording of each unit, by overload.
base::Result<base::Bytes> parse_quantity(std::string_view text, base::Bytes) {
  return base::parse_bytes(text);
}
base::Result<base::BytesPerSecond> parse_quantity(std::string_view text, base::BytesPerSecond) {
  return base::parse_bytes_per_second(text);
}
base::Result<base::FlopsPerSecond> parse_quantity(std::string_view text, base::FlopsPerSecond) {
  return base::parse_flops_per_second(text);
}
base::Result<base::Watts> parse_quantity(std::string_view text, base::Watts) {
  return base::parse_watts(text);
}
std::string_view unit_suffix(base::Bytes) {
  return "_bytes";
}
std::string_view unit_suffix(base::BytesPerSecond) {
  return "_bytes_per_s";
}
std::string_view unit_suffix(base::FlopsPerSecond) {
  return "_flops_per_s";
}
std::string_view unit_suffix(base::Watts) {
  return "_watts";
}
std::string expected_quantity(base::Bytes) {
  return "a size such as \"80 GiB\"";
}
std::string expected_quantity(base::BytesPerSecond) {
  return "a bandwidth such as \"450 GB/s\"";
}
std::string expected_quantity(base::FlopsPerSecond) {
  return "a rate such as \"989 TFLOP/s\"";
}
std::string expected_quantity(base::Watts) {
  return "a power such as \"700 W\"";
}

}  // namespace

template <class Tag, class Rep>
base::Result<base::Quantity<Tag, Rep>> FieldType<base::Quantity<Tag, Rep>>::parse(
    const Value& value) {
  const auto* text = value.get<std::string>();
  if (text == nullptr) return base::fail(type_mismatch(expected(), value));
  return parse_quantity(*text, Quantity{});
}

template <class Tag, class Rep>
std::string FieldType<base::Quantity<Tag, Rep>>::expected() {
  return expected_quantity(Quantity{});
}

template <class Tag, class Rep>
std::string_view FieldType<base::Quantity<Tag, Rep>>::json_suffix() {
  return unit_suffix(Quantity{});
}

template struct FieldType<base::Bytes>;
template struct FieldType<base::BytesPerSecond>;
template struct FieldType<base::FlopsPerSecond>;
template struct FieldType<base::Watts>;

}  // namespace assay::spec
