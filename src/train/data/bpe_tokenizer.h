// The byte-pair tokenizer that every vocabulary file becomes, whatever its form: tokenizer_json.cc
// and tiktoken.cc fill a BpeVocabulary, bpe_tokenizer.cc encodes with it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/data/bpe.h"
#include "train/data/tokenizer.h"
#include "train/data/word_splitter.h"

namespace assay::data {

struct BytesHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view bytes) const {
    return std::hash<std::string_view>()(bytes);
  }
};
using TokenOfBytes = std::unordered_map<std::string, TokenId, BytesHash, std::equal_to<>>;

// A file with more ids than this is no vocabulary.
inline constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24;

struct BpeVocabulary {
  std::array<TokenId, 256> byte_ids{};
  PairTable pairs;
  // A word that is a token as a whole is that token, whatever the merges would make of it.
  bool whole_words_first = false;
  TokenOfBytes words;  // of all tokens; needed for whole words
  // By id; nothing where no token has the id.
  std::vector<std::optional<std::string>> spellings;
  // Tokens that are looked for in the text before it is split into words.
  std::vector<std::pair<std::string, TokenId>> added;

  void spell(TokenId id, std::string bytes);
};

std::unique_ptr<const Tokenizer> bpe_tokenizer(BpeVocabulary vocabulary, WordSplitter splitter);

}  // namespace assay::data
