// How each type of field is read from a Value, written as JSON and named in messages.
// Internal to src/spec.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/money.h"
#include "base/result.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"
#include "spec/enum_names.h"
#include "spec/price.h"
#include "spec/value.h"

namespace assay::spec {

// "expected a whole number, got the string 'four'" — the caller adds file, line and key.
base::Error type_mismatch(std::string_view expected, const Value& got);

// Each FieldType<T> has: parse, text, json, expected; and magnitude where ranges make sense.
template <class T>
struct FieldType;

template <>
struct FieldType<std::int64_t> {
  static base::Result<std::int64_t> parse(const Value& value);
  static double magnitude(std::int64_t value) { return static_cast<double>(value); }
  static std::string text(std::int64_t value) { return std::to_string(value); }
  static base::Json json(std::int64_t value) { return value; }
  static std::string expected() { return "a whole number"; }
};

template <>
struct FieldType<double> {
  static base::Result<double> parse(const Value& value);
  static double magnitude(double value) { return value; }
  static std::string text(double value);
  static base::Json json(double value) { return value; }
  static std::string expected() { return "a number"; }
};

template <>
struct FieldType<bool> {
  static base::Result<bool> parse(const Value& value);
  static std::string text(bool value) { return value ? "true" : "false"; }
  static base::Json json(bool value) { return value; }
  static std::string expected() { return "true or false"; }
};

template <>
struct FieldType<std::string> {
  static base::Result<std::string> parse(const Value& value);
  static std::string text(const std::string& value) { return value; }
  static base::Json json(const std::string& value) { return value; }
  static std::string expected() { return "a string"; }
};

template <>
struct FieldType<base::Date> {
  static base::Result<base::Date> parse(const Value& value);
  static std::string text(base::Date value) { return base::to_text(value); }
  static base::Json json(base::Date value) { return base::to_text(value); }
  static std::string expected() { return "a date such as 2026-08-14 or \"2026-08\""; }
};

template <>
struct FieldType<PriceRange> {
  static base::Result<PriceRange> parse(const Value& value);
  static std::string text(const PriceRange& value) { return to_text(value); }
  static base::Json json(const PriceRange& value);
  static std::string expected() { return "an amount such as \"31.92 USD\", or [low, high]"; }
};

// A quantity with a unit is written as a string with that unit; a bare number would be a guess.
template <class Tag, class Rep>
struct FieldType<base::Quantity<Tag, Rep>> {
  using Quantity = base::Quantity<Tag, Rep>;
  static base::Result<Quantity> parse(const Value& value);
  static double magnitude(Quantity value) { return static_cast<double>(value.count()); }
  static std::string text(Quantity value) { return base::to_text(value); }
  // JSON carries plain numbers; the key says the unit ("memory_bytes").
  static base::Json json(Quantity value) { return value.count(); }
  static std::string_view json_suffix();
  static std::string expected();
};

template <Enum E>
struct FieldType<E> {
  static base::Result<E> parse(const Value& value) {
    const auto* name = value.get<std::string>();
    if (name == nullptr) return base::fail(type_mismatch(expected(), value));
    for (const auto& [candidate, constant] : EnumNames<E>::kNames) {
      if (candidate == *name) return constant;
    }
    std::vector<std::string> names;
    for (const auto& entry : EnumNames<E>::kNames) names.emplace_back(entry.first);
    constexpr std::size_t kColumns = 40;
    const std::string shown = base::shortened(base::printable(*name), kColumns);
    return base::fail(
        base::usage_error("", "unknown value '" + shown + "'", base::suggestion(*name, names)));
  }
  static std::string text(E value) { return std::string(to_text(value)); }
  static base::Json json(E value) { return to_text(value); }
  static std::string expected() {
    std::string list;
    for (const auto& [name, constant] : EnumNames<E>::kNames) {
      list += (list.empty() ? "\"" : " | \"") + std::string(name) + "\"";
    }
    return list;
  }
};

}  // namespace assay::spec
