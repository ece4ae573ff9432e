// Checks the nesting of dotted names before toml++ parses the text. Internal to src/spec.
#pragma once

#include <string_view>

namespace assay::spec {

// No key of a spec has more parts than this.
inline constexpr int kMaxNameParts = 16;

// The line of the first dotted name (a.b."c") with more than kMaxNameParts parts, or 0. toml++
// makes a table of every part and destroys tables recursively: a long name would overflow the
// stack.
int line_of_deep_name(std::string_view toml);

}  // namespace assay::spec
