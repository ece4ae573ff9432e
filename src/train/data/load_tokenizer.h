// Tokenizers by name or file: "bytes", a HuggingFace tokenizer.json, or a tiktoken file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/data/tokenizer.h"

namespace assay::data {

struct TokenizerChoice {
  std::string source = "bytes";  // or a file
  // For tiktoken files, which contain neither: how text is split (split_pattern_names()), and the
  // special tokens as "TEXT=ID".
  std::string pattern = {};
  std::vector<std::string> special = {};
  // Whether the user can set these two; errors then suggest it.
  bool has_options = true;
  // Treat added and special tokens in documents as ordinary text.
  bool added_as_text = false;
};

// Errors are usage errors that name the file and the unsupported part.
base::Result<std::unique_ptr<const Tokenizer>> load_tokenizer(const TokenizerChoice& choice);

// From a definition (Tokenizer::definition()) found in `where`: a shard or a checkpoint.
base::Result<std::unique_ptr<const Tokenizer>> tokenizer_of(const std::string& definition,
                                                            const std::string& where);

}  // namespace assay::data
