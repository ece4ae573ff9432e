// Exact decimal numbers: "1.1" times 1000 is 1100 and not 1100.0000000000002. Used for byte
// counts and money; everything else is a double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace assay::base {

// The length of the prefix of `text` that is digits[.digits][e[+-]digits]; 0 if there is none.
std::size_t decimal_size(std::string_view text);

enum class DecimalError { kTooLarge, kNotWhole };

// number × factor; all of `number` must be what decimal_size() accepts.
tl::expected<std::int64_t, DecimalError> decimal_times(std::string_view number,
                                                       std::uint64_t factor);

// "1.500" -> "1.5", "2.0" -> "2"; "20" stays.
std::string without_trailing_zeros(std::string text);

}  // namespace assay::base
