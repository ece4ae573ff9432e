// Trains a byte-pair vocabulary: starting from the 256 bytes, repeatedly turns the most frequent
// pair of adjacent tokens into a new token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/data/count_words.h"

namespace assay::data {

// The tokens' bytes, by rank: the 256 bytes in the order of their spellings (bpe.h), then
// the merges in order; at most `tokens`, fewer if no pair is left. Ties go to the pair with the
// lower ranks, so the result depends only on the counts. `progress` is called with the number of
// tokens just made.
std::vector<std::string> train_bpe(const WordCounts& words, std::size_t tokens,
                                   const std::function<void(std::int64_t)>& progress = {});

}  // namespace assay::data
