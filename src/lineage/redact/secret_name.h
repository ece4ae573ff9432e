// Whether a name (of an environment variable, an option, a query parameter) marks its value as a
// secret. Names are split into words, so that KEYBOARD and MONKEY are not keys.
#pragma once

#include <string_view>

namespace assay::lineage {

enum class Secrecy {
  kPublic,
  kMaybe,   // KEY, SESSION, TOKENS …: a secret unless the value is plainly something else
  kSecret,  // PASSWORD, API_KEY, …: whatever the value
};

Secrecy secrecy_of_name(std::string_view name);

// A number, a list of numbers or a boolean: MAX_TOKENS=4096 is not a secret.
bool is_number_or_bool(std::string_view value);

}  // namespace assay::lineage
