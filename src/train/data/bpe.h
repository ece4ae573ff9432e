// Byte-pair encoding of one word: starting from its bytes, repeatedly merges the adjacent pair of
// lowest rank, leftmost first. Also the spelling of bytes in byte-level vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/tokenizer.h"

namespace assay::data {

// What adjacent tokens merge into. A hash table with open addressing: it is queried for every pair
// of every word that is not cached.
class PairTable {
 public:
  struct Merge {
    std::uint32_t rank;
    TokenId result;
  };

  // Replaces an existing entry.
  void add(TokenId left, TokenId right, Merge merge);
  [[nodiscard]] const Merge* find(TokenId left, TokenId right) const;

  struct Pair {
    TokenId left;
    TokenId right;
    Merge merge;
  };
  // All pairs sorted by rank, then by their tokens.
  [[nodiscard]] std::vector<Pair> sorted() const;

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge = {};
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::size_t used_ = 0;
};

// Merges words; reuses its memory from word to word.
class WordMerger {
 public:
  // Appends the word's tokens. O(n log n) in the word's bytes.
  void merge(const std::array<TokenId, 256>& byte_ids, const PairTable& pairs,
             std::string_view word, std::vector<TokenId>& tokens);

 private:
  struct Node {
    TokenId token;
    std::uint32_t before;
    std::uint32_t after;
  };
  void push_candidate(const PairTable& pairs, std::uint32_t left);

  std::vector<Node> nodes_;  // linked list of the tokens so far
  std::vector<std::uint64_t>
      candidates_;  // heap of candidate merges: rank, then position of the left token
};

// The tokens of recently seen words. Text is mostly the same few thousand words, and a
// lookup is many times faster than merging. Fixed size and direct-mapped: a word has one slot,
// which a later word may replace.
class WordCache {
 public:
  // Appends the word's tokens if they are cached.
  bool find(std::string_view word, std::vector<TokenId>& tokens) const {
    if (word.size() > kMostBytes) return false;
    const Slot& slot = slots_[slot_of(word)];
    if (slot.size != word.size() || std::memcmp(slot.word.data(), word.data(), word.size()) != 0) {
      return false;
    }
    tokens.insert(tokens.end(), slot.tokens.begin(), slot.tokens.begin() + slot.count);
    return true;
  }

  void store(std::string_view word, std::span<const TokenId> tokens) {
    if (word.size() > kMostBytes || tokens.size() > kMostTokensOfAWord) return;
    Slot& slot = slots_[slot_of(word)];
    slot.size = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(tokens.size());
    std::memcpy(slot.word.data(), word.data(), word.size());
    std::copy(tokens.begin(), tokens.end(), slot.tokens.begin());
  }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 15;
  static constexpr std::size_t kMostBytes = 30;
  static constexpr std::size_t kMostTokensOfAWord = 8;

  struct Slot {
    std::uint8_t size = 0;  // 0: free; words are not empty
    std::uint8_t count = 0;
    std::array<char, kMostBytes> word;
    std::array<TokenId, kMostTokensOfAWord> tokens;
  };

  static std::size_t slot_of(std::string_view word) {
    return std::hash<std::string_view>()(word) % kSlots;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

// The alphabet in which byte-level vocabularies spell bytes: one printable character per byte.
// Printable Latin-1 characters stand for themselves; the other bytes, in order, are U+0100 and up.
//
// The bytes of a spelling; nothing if it has a character outside the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

std::string spelling_of_bytes(std::string_view bytes);

}  // namespace assay::data
