// How many tokens have logits at a time.
#pragma once

#include <cstdint>

namespace assay::step {

// Rows of the head's weight are rounded up to a multiple of this: a vocabulary of an odd size makes
// products with it many times slower.
inline constexpr std::int64_t kRoundRows = 64;

// Logits that exist at a time, at most: elements.
inline constexpr std::int64_t kMostLogits = std::int64_t{1} << 29U;

// Of `tokens` with `vocab` logits each: equal parts, so that no small one is left over.
std::int64_t head_rows(std::int64_t tokens, std::int64_t vocab);

}  // namespace assay::step
