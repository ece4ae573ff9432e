// The byte-pair tokenizer: tokenizer_json.cc and tiktoken.cc read vocabulary files into a
// BpeVocabulary, bpe_tokenizer.cc encodes with it.
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

// Larger ids are refused as nonsense.
inline constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 24;

struct BpeVocabulary {
  std::array<TokenId, 256> byte_ids{};
  PairTable pairs;
  // A word that is itself a token becomes that token, regardless of the merges.
  bool whole_words_first = false;
  TokenOfBytes words;  // all tokens by their bytes
  // By id; nothing for unused ids.
  std::vector<std::optional<std::string>> spellings;
  // Literal tokens, matched before text is split into words; with `added_as_text` they are not
  // matched, but treated as ordinary text.
  std::vector<AddedToken> added;
  bool added_as_text = false;

  void spell(TokenId id, std::string bytes);
  // Fills byte_ids from the words. Fails if a byte is no word; the error says that `list`, a part
  // of the file at `where`, has none for it.
  base::Result<void> find_byte_ids(const std::string& where, std::string_view list = {});
};

// `pattern` is the source of the splitter.
std::unique_ptr<const Tokenizer> bpe_tokenizer(BpeVocabulary vocabulary, WordSplitter splitter,
                                               std::string pattern);

}  // namespace assay::data
