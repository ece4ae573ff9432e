// TOML text -> Value. The only file that uses toml++.
#pragma once

#include <string_view>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

// `source` names the text in errors and origins. A number with an exponent that is a whole number
// of 64 bits is one in the Value: 1e11, 1.5e9; 4.0 and 10e-1 stay floats.
base::Result<Value> parse_toml(std::string_view text, const std::string& source);

// The right side of `--set key=value`: a TOML value, or otherwise the bare text as a string, so
// that `--set model.extends=tiny` needs no extra quotes.
Value parse_override_value(std::string_view text, const std::string& source);

// No key of a spec has more parts than this.
inline constexpr int kMaxNameParts = 16;

// The line of the first dotted name (a.b."c") with more than kMaxNameParts parts, or 0. toml++
// makes a table of every part and destroys tables recursively: a long name would overflow the
// stack.
int line_of_deep_name(std::string_view toml);

}  // namespace assay::spec
