// "Did you mean": finds the valid name that a misspelt one was meant to be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::base {

// The candidate most likely meant by `name`, if any is close enough.
// Nothing if `name` itself is a candidate.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

// "did you mean 'x'?" for Error::hint: names the nearest candidate; if none is near and there are
// few, all of them; otherwise empty.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

}  // namespace assay::base
