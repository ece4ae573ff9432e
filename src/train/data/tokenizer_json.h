// Hugging Face's tokenizer.json, read and written: byte-level byte-pair encoding as in GPT-2 and
// Llama 3. Any other feature is refused by name, because almost-right tokens are wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/data/bpe_tokenizer.h"

namespace assay::data {

struct LoadedBpe {
  BpeVocabulary vocabulary;
  std::string pattern;  // splits text into words
};
// `where` names the file in errors.
base::Result<LoadedBpe> read_tokenizer_json(std::string_view text, const std::string& where);

// The form in which a tokenizer is stored in shards and checkpoints.
//
// The same text for the same tokenizer, regardless of the file it was read from: its BLAKE3 is the
// tokenizer's identity. An empty pattern means that text is not split into words. `more` are
// further added tokens. If added tokens are treated as ordinary text, each is marked with
// `"as_text":true`, which other readers of the format ignore.
std::string tokenizer_json_text(const BpeVocabulary& vocabulary, const std::string& pattern,
                                const std::vector<AddedToken>& more = {});

}  // namespace assay::data
