// Exact decimal numbers: "1.1" times 1000 is 1100 and not 1100.0000000000002. Used for byte
// counts and money; everything else is a double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tl/expected.hpp>

namespace assay::base {

// How much of the start of `text` is digits[.digits][e[+-]digits]; 0 when it is no number.
std::size_t decimal_size(std::string_view text);

enum class DecimalError { kTooLarge, kNotWhole };

// number × factor, where `number` is wholly what decimal_size() accepts.
tl::expected<std::int64_t, DecimalError> decimal_times(std::string_view number,
                                                       std::uint64_t factor);

}  // namespace assay::base
