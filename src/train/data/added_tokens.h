// AddedTokens: finds literal tokens (<|endoftext|>) in text before it is split into words. The
// leftmost match wins; of matches with the same start, the longest.
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
  // The texts must not be empty.
  explicit AddedTokens(std::vector<std::pair<std::string, TokenId>> tokens);

  struct Found {
    std::size_t begin;  // no added token begins before this
    std::size_t size;   // 0: none, but if `more` text follows, one may start at `begin`
    TokenId token;
  };
  // Searches from `from` on. Without a match `begin` is the end of the text.
  [[nodiscard]] Found find(std::string_view text, std::size_t from, bool more) const;

 private:
  std::vector<std::pair<std::string, TokenId>> sorted_;
  std::array<bool, 256> starts_{};
};

}  // namespace assay::data
