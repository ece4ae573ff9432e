// Whether a name (of an environment variable, an option, a query parameter) says that its value is
// a secret. Word by word, so that KEYBOARD and MONKEY are no keys.
#pragma once

#include <string_view>

namespace assay::lineage {

enum class NameSays {
  kNothing,
  kMaybe,   // KEY, SESSION, TOKENS …: a secret unless the value is plainly something else
  kSecret,  // PASSWORD, API_KEY, …: whatever the value
};

NameSays what_name_says(std::string_view name);

// A number, a list of numbers or a truth value: MAX_TOKENS=4096 is no secret.
bool is_number_or_truth(std::string_view value);

}  // namespace assay::lineage
