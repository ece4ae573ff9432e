// "Did you mean": which of the valid names a misspelt one was meant to be.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::base {

// Fewest single-character insertions, deletions, substitutions and adjacent swaps from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate most likely meant by `name`, if any is close enough.
// Nothing if `name` is a candidate itself.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

// "did you mean 'x'?" for Error::hint: the nearest candidate, or all of them when none is near and
// there are few, or nothing.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

}  // namespace assay::base
