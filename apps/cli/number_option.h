// Options whose value is a number within bounds: parsed, and refused in the same words everywhere.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/number.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"

namespace assay::cli {

// "10,000,000", "0.5"
template <class T>
std::string bound_text(T bound) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::abs(bound) >= 1e15 || std::trunc(bound) != bound) return fmt::format("{}", bound);
  }
  return base::grouped(static_cast<std::int64_t>(bound));
}

// The number that `text` is, if it is one from `least` to `most`; else a usage error:
// "generate --tokens: 'x' is not a whole number from 1 to 1,000,000".
template <class T>
base::Result<T> number_option(std::string where, std::string_view text, T least,
                              T most = std::numeric_limits<T>::max(), std::string hint = {}) {
  const auto number = base::parse_number<T>(text);
  if (number && *number >= least && *number <= most) return *number;
  const char* const kind = std::is_floating_point_v<T> ? "number" : "whole number";
  // The largest number of the type is worth naming only to those who have exceeded it.
  const bool exceeded = !number && base::is_digits(text);
  const std::string bounds =
      most == std::numeric_limits<T>::max() && !exceeded
          ? fmt::format("of at least {}", bound_text(least))
          : fmt::format("from {} to {}", bound_text(least), bound_text(most));
  return base::fail(base::usage_error(
      std::move(where), fmt::format("'{}' is not a {} {}", text, kind, bounds), std::move(hint)));
}

}  // namespace assay::cli
