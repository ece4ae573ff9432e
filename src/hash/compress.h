// One compression in plain C++: for incomplete chunks at the end of the input, the root, and
// processors without a vector kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hash/format.h"

namespace assay::hash {

using Words = std::uint32_t[8];  // a chaining value, as numbers

void compress(Words& chaining, const std::byte* block, std::uint32_t block_bytes,
              std::uint64_t counter, std::uint32_t flags);

// Words as the little-endian bytes that the tree is made of.
void store_words(const Words& words, std::byte* bytes);

}  // namespace assay::hash
