// TOML text -> Value. The only file that uses toml++.
#pragma once

#include <string_view>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

// `source` names the text in errors and origins.
base::Result<Value> parse_toml(std::string_view text, const std::string& source);

// The right side of `--set key=value`: a TOML value, or otherwise the bare text as a string, so
// that `--set model.extends=tiny` needs no extra quotes.
Value parse_override_value(std::string_view text, const std::string& source);

}  // namespace assay::spec
