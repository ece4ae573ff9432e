// The regular expressions that split text into words: the named ones of well-known vocabularies,
// and the translation from the dialects vocabularies use (Oniguruma, Rust) to PCRE2's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::data {

// The patterns of well-known tiktoken vocabularies, by name: gpt2, cl100k, o200k, llama3.
base::Result<std::string> split_pattern(std::string_view name);
std::vector<std::string> split_pattern_names();

// Replaces \s and \S by Unicode's White_Space: PCRE2's also match U+180E, which is no longer a
// space. Anchors to the start of the text are refused; errors name `where`.
base::Result<std::string> to_pcre2(const std::string& pattern, const std::string& where);

}  // namespace assay::data
