// Changing the environment that a command will get.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::collect {

enum class Place { kFirst, kLast };

// The environment with `value` under `key` ("KEY="), after or before what was there, with a colon
// between.
void join(std::vector<std::string>& environment, std::string_view key, const std::string& value,
          Place place);

// What "KEY=" is set to; empty if it is not set.
std::string_view value_of(const std::vector<std::string>& environment, std::string_view key);

}  // namespace assay::collect
