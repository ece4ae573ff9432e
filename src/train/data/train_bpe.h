// Trains a byte-pair vocabulary: starting from the 256 bytes, the most frequent pair of adjacent
// tokens becomes a token, again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/data/count_words.h"

namespace assay::data {

// The tokens' bytes, by rank: the 256 bytes in the order of their spellings (byte_spelling.h), then
// merges, in order; at most `tokens`, and fewer if no pair is left. Of pairs that are equally
// frequent the one with the lower ranks is taken, so the result depends on the counts only.
// `progress` is called with the number of tokens just made.
std::vector<std::string> train_bpe(const WordCounts& words, std::size_t tokens,
                                   const std::function<void(std::int64_t)>& progress = {});

// As a tiktoken file: a line per token, its bytes in base64 and its rank.
std::string tiktoken_text(const std::vector<std::string>& tokens);

}  // namespace assay::data
