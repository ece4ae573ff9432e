// AddedTokens: finds tokens that stand in the text as they are (<|endoftext|>), before it is split
// into words. The leftmost counts, and of those that start together the longest.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/data/tokenizer.h"

namespace assay::data {

class AddedTokens {
 public:
  // None of the texts is empty.
  explicit AddedTokens(std::vector<std::pair<std::string, TokenId>> tokens);

  struct Found {
    std::size_t begin;  // text before it holds no added token
    std::size_t size;   // 0: none; with `more`, one may begin at `begin`
    TokenId token;
  };
  // From `from` on. Without any, `begin` is the end of the text.
  [[nodiscard]] Found find(std::string_view text, std::size_t from, bool more) const;

 private:
  std::vector<std::pair<std::string, TokenId>> sorted_;
  std::array<bool, 256> starts_{};
};

}  // namespace assay::data
