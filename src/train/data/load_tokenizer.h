// Tokenizers by name or file: "bytes", a HuggingFace tokenizer.json, or a tiktoken file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/data/bpe_tokenizer.h"
#include "train/data/tokenizer.h"

namespace assay::data {

struct TokenizerChoice {
  std::string source = "bytes";  // or a file
  // Of tiktoken files, which say neither: how text is split (split_pattern_names()), and their
  // special tokens as "TEXT=ID".
  std::string pattern = {};
  std::vector<std::string> special = {};
  // Added and special tokens that stand in the text are text like any other.
  bool added_as_text = false;
};

// Errors are usage errors that name the file and what in it is not supported.
base::Result<std::unique_ptr<const Tokenizer>> load_tokenizer(const TokenizerChoice& choice);

// The two forms of file, as text. `where` is for errors.
struct LoadedBpe {
  BpeVocabulary vocabulary;
  std::string pattern;
};
base::Result<LoadedBpe> read_tokenizer_json(std::string_view text, const std::string& where);
base::Result<BpeVocabulary> read_tiktoken(std::string_view text, const std::string& where,
                                          const std::vector<std::string>& special);

}  // namespace assay::data
