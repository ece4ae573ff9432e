// Byte-pair encoding of one word: starting from its bytes, repeatedly merges the adjacent pair of
// lowest rank, leftmost first.
#pragma once

#include <array>
#include <cstdint>
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

}  // namespace assay::data
