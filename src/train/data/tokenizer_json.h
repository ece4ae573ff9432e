// Reads a Hugging Face tokenizer.json: byte-level byte-pair encoding as in GPT-2 and Llama 3. Any
// other feature is refused by name, because almost-right tokens are wrong.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "train/data/bpe_tokenizer.h"

namespace assay::data {

struct LoadedBpe {
  BpeVocabulary vocabulary;
  std::string pattern;  // splits text into words
};
// `where` names the file in errors.
base::Result<LoadedBpe> read_tokenizer_json(std::string_view text, const std::string& where);

}  // namespace assay::data
