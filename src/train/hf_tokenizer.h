// A checkpoint's tokenizer as the files that Hugging Face transformers reads, and what such files
// say about the beginning of a text.
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

// The tokenizer must be known. Transformers will put the token before a text that came before each
// document in training; the token after documents, or else that one, is its eos_token, which ends
// what is generated and is not added to a text. `context` is the longest text that the model takes.
base::Result<HfTokenizerFiles> hf_tokenizer_files(const TokenizerRecord& tokenizer,
                                                  std::int64_t context);

// The token that transformers puts before every text with the tokenizer of a model's folder:
// tokenizer.json has a template for that, but a tokenizer_config.json of Llama's own class says it
// with add_bos_token. `tokenizer` is the folder's. Nothing if there is no such token.
std::optional<data::TokenId> hf_bos(const std::filesystem::path& folder,
                                    const data::Tokenizer& tokenizer);
// Whether special tokens that occur in a text are ordinary text there (split_special_tokens).
bool hf_added_as_text(const std::filesystem::path& folder);

}  // namespace assay::train
