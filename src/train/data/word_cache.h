// WordCache: the tokens of recently seen words. Text is mostly the same few thousand words, and a
// lookup is many times faster than merging. Fixed size and direct-mapped: a word has one slot,
// which a later word may replace.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "train/data/tokenizer.h"

namespace assay::data {

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

}  // namespace assay::data
