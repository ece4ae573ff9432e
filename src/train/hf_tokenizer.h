// A checkpoint's tokenizer as the files that Hugging Face transformers reads, and what such files
// say about special tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "train/tokenizer_record.h"

namespace assay::train {

struct HfTokenizerFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json
};

// The tokenizer must be known. Transformers will then prepend the token that preceded each document
// in training (bos). Its eos_token, which ends generation and is not added to texts, is the token
// that followed documents or, if there was none, bos. `context` is the model's longest sequence.
base::Result<HfTokenizerFiles> hf_tokenizer_files(const TokenizerRecord& tokenizer,
                                                  std::int64_t context);

// The token that transformers prepends to every text, given the tokenizer files in a model's
// folder: usually from the template in tokenizer.json, but for Llama's own tokenizer class from
// add_bos_token in tokenizer_config.json. `tokenizer` is the one in the folder. Nothing if there is
// no such token.
std::optional<data::TokenId> hf_bos(const std::filesystem::path& folder,
                                    const data::Tokenizer& tokenizer);
// Whether special tokens that occur in texts are treated as ordinary text (split_special_tokens).
bool hf_added_as_text(const std::filesystem::path& folder);

}  // namespace assay::train
