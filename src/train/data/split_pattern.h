// From the dialect in which vocabularies write their patterns (Oniguruma, Rust) to PCRE2's.
#pragma once

#include <string>

#include "base/result.h"

namespace assay::data {

// \s and \S as Unicode's White_Space: PCRE2's own also match U+180E, which stopped being a space.
// Anchors to the start of the text are refused; errors name `where`.
base::Result<std::string> for_pcre2(const std::string& pattern, const std::string& where);

}  // namespace assay::data
