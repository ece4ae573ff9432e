// Writes a tokenizer as a Hugging Face tokenizer.json, the form in which shards and checkpoints
// carry it (tokenizer_json.h reads it).
#pragma once

#include <string>
#include <vector>

#include "train/data/bpe_tokenizer.h"

namespace assay::data {

// The same text for the same tokenizer, whatever file it was read from: its BLAKE3 is the
// tokenizer's identity. An empty pattern means that text is not split into words. `more` are
// further added tokens. That added tokens are ordinary text where they occur in text is kept as
// `"as_text":true` of each, which other readers of such files pass over.
std::string tokenizer_json_text(const BpeVocabulary& vocabulary, const std::string& pattern,
                                const std::vector<AddedToken>& more = {});

}  // namespace assay::data
