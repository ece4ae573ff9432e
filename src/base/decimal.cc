// Digits are kept in 128 bits and divided only when nothing is lost.
#include "base/decimal.h"

#include <charconv>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace assay::base {
namespace {

__extension__ using Wide = unsigned __int128;  // 64 bits of digits times 64 bits of factor

constexpr Wide kLargest64 = std::numeric_limits<std::uint64_t>::max();
constexpr Wide kLargestResult = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());

std::size_t digits_at(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - from;
}

struct Parts {
  std::string_view whole;
  std::string_view fraction;  // without trailing zeros
  std::int64_t exponent = 0;
};

Parts parts_of(std::string_view number) {
  Parts parts;
  parts.whole = number.substr(0, digits_at(number, 0));
  number.remove_prefix(parts.whole.size());
  if (number.starts_with('.')) {
    parts.fraction = number.substr(1, digits_at(number, 1));
    number.remove_prefix(1 + parts.fraction.size());
    parts.fraction = parts.fraction.substr(0, parts.fraction.find_last_not_of('0') + 1);
  }
  if (!number.empty()) {
    number.remove_prefix(1);                               // e
    if (number.starts_with('+')) number.remove_prefix(1);  // which from_chars refuses
    const auto parsed =
        std::from_chars(number.data(), number.data() + number.size(), parts.exponent);
    if (parsed.ec != std::errc{}) {
      parts.exponent = number.starts_with('-') ? -1'000'000'000 : 1'000'000'000;
    }
  }
  return parts;
}

}  // namespace

std::size_t decimal_size(std::string_view text) {
  std::size_t size = digits_at(text, 0);
  if (size == 0) return 0;
  if (size < text.size() && text[size] == '.') {
    const std::size_t fraction = digits_at(text, size + 1);
    if (fraction == 0) return 0;
    size += 1 + fraction;
  }
  if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
    std::size_t at = size + 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    // "1EB" is a number and a unit: without digits the e belongs to what follows.
    if (const std::size_t exponent = digits_at(text, at); exponent > 0) size = at + exponent;
  }
  return size;
}

tl::expected<std::int64_t, DecimalError> decimal_times(std::string_view number,
                                                       std::uint64_t factor) {
  ASSAY_CHECK(!number.empty() && decimal_size(number) == number.size(), "number is a decimal");
  const Parts parts = parts_of(number);
  const tl::unexpected<DecimalError> too_large(DecimalError::kTooLarge);
  Wide value = 0;
  for (const std::string_view digits : {parts.whole, parts.fraction}) {
    for (const char digit : digits) {
      value = value * 10 + static_cast<unsigned>(digit - '0');
      if (value > kLargest64) return too_large;
    }
  }
  value *= factor;
  if (value == 0) return 0;

  // Each pass either grows value towards the limit or takes away one of its few factors of ten.
  std::int64_t shift = parts.exponent - static_cast<std::int64_t>(parts.fraction.size());
  for (; shift > 0; --shift) {
    value *= 10;
    if (value > kLargestResult) return too_large;
  }
  for (; shift < 0; ++shift) {
    if (value % 10 != 0) return tl::unexpected<DecimalError>(DecimalError::kNotWhole);
    value /= 10;
  }
  if (value > kLargestResult) return too_large;
  return static_cast<std::int64_t>(value);
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace assay::base
