// A tiktoken file, read and written: a line per token with its bytes in base64 and its rank, which
// is also its id. Two tokens merge when their concatenated bytes are a token; the lowest rank
// first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/data/bpe_tokenizer.h"

namespace assay::data {

// `special`: special tokens as "TEXT=ID", which the file does not contain. `where` names the file
// in errors.
base::Result<BpeVocabulary> read_tiktoken(std::string_view text, const std::string& where,
                                          const std::vector<std::string>& special);

// The tokens' bytes by rank, as such a file.
std::string tiktoken_text(const std::vector<std::string>& tokens);

}  // namespace assay::data
