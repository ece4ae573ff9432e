// A number that is the whole of a text. Texts come from users and from files, so anything that is
// not exactly one number is nothing.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace assay::base {

// The number that the text is: nothing before it or after it, no plus sign, in the type's range
// and, for floating point, finite ("inf" and "nan" are none). `format` is that of std::from_chars:
// the base of an integer, or the notation of a floating-point number.
template <class T, class... Format>
std::optional<T> parse_number(std::string_view text, Format... format) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value, format...);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

}  // namespace assay::base
