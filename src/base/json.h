// The one way facts become JSON: every verb's --json goes through json_text().
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay::base {

// Keys keep the order in which a verb writes them, so output reads like the table it mirrors.
using Json = nlohmann::ordered_json;

// Two-space indented with a final newline. Never throws: invalid UTF-8 (a path can hold any bytes)
// becomes U+FFFD, and a number that is not finite becomes null.
std::string json_text(const Json& document);

}  // namespace assay::base
