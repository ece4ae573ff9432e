// The inner loop of loading: expands a window of stored tokens into a row of int32 tokens and a row
// of targets, and checks every token.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::data {

// tokens[i] = window[i] and targets[i] = window[i + 1] for i < `sequence`; `window` has `sequence`
// + 1 tokens. False if a token is outside the vocabulary: the rows are then invalid.
bool copy_window(const std::uint16_t* window, std::size_t sequence, std::int32_t vocabulary,
                 std::int32_t* tokens, std::int32_t* targets);
bool copy_window(const std::uint32_t* window, std::size_t sequence, std::int32_t vocabulary,
                 std::int32_t* tokens, std::int32_t* targets);

}  // namespace assay::data
