#include "train/data/added_tokens.h"

#include <algorithm>

namespace assay::data {

AddedTokens::AddedTokens(std::vector<std::pair<std::string, TokenId>> tokens)
    : sorted_(std::move(tokens)) {
  std::sort(sorted_.begin(), sorted_.end());
  for (const auto& [text, token] : sorted_) starts_[static_cast<unsigned char>(text[0])] = true;
}

AddedTokens::Found AddedTokens::find(std::string_view text, std::size_t from, bool more) const {
  if (sorted_.empty()) return {text.size(), 0, 0};
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    // The candidates are a range of the sorted texts that narrows with each byte; the shortest is
    // its first.
    auto low = sorted_.begin();
    auto high = sorted_.end();
    Found longest{begin, 0, 0};
    std::size_t size = 0;
    while (low != high && begin + size < text.size()) {
      const auto letter_of = [size](const auto& entry) {
        return static_cast<unsigned char>(entry.first[size]);
      };
      const auto letter = static_cast<unsigned char>(text[begin + size]);
      low = std::partition_point(low, high, [&](const auto& e) { return letter_of(e) < letter; });
      high = std::partition_point(low, high, [&](const auto& e) { return letter_of(e) == letter; });
      ++size;
      if (low != high && low->first.size() == size) {
        longest = {begin, size, low->second};
        ++low;
      }
    }
    if (low != high && more) return {begin, 0, 0};  // the text ended first
    if (longest.size > 0) return longest;
  }
  return {text.size(), 0, 0};
}

}  // namespace assay::data
