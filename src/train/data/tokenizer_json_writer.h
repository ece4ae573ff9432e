// Writes a tokenizer as a Hugging Face tokenizer.json, the form in which it is stored in shards and
// checkpoints (tokenizer_json.h reads it).
#pragma once

#include <string>
#include <vector>

#include "train/data/bpe_tokenizer.h"

namespace assay::data {

// The same text for the same tokenizer, regardless of the file it was read from: its BLAKE3 is the
// tokenizer's identity. An empty pattern means that text is not split into words. `more` are
// further added tokens. If added tokens are treated as ordinary text, each is marked with
// `"as_text":true`, which other readers of the format ignore.
std::string tokenizer_json_text(const BpeVocabulary& vocabulary, const std::string& pattern,
                                const std::vector<AddedToken>& more = {});

}  // namespace assay::data
