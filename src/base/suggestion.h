// "Did you mean": finds the valid name that a misspelt one was meant to be.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::base {

// The smallest number of single-character insertions, deletions, substitutions and adjacent swaps
// that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate most likely meant by `name`, if any is close enough.
// Nothing if `name` itself is a candidate.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

// "did you mean 'x'?" for Error::hint: names the nearest candidate; if none is near and there are
// few, all of them; otherwise empty.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

}  // namespace assay::base
