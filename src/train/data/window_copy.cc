// Compiled with -O3 (CMakeLists.txt). A vectorised comparison per token needs instructions that the
// baseline processor lacks, so the sign of a difference is used: `below` stays negative as long as
// every token is below the vocabulary.
#include "train/data/window_copy.h"

#include <limits>

namespace assay::data {
namespace {

constexpr std::int32_t kLowBits = std::numeric_limits<std::int32_t>::max();

template <class Stored>
bool copy_rows(const Stored* __restrict window, std::size_t sequence, std::int32_t vocabulary,
               std::int32_t* __restrict tokens, std::int32_t* __restrict targets) {
  std::int32_t below = -1;
  std::int32_t any = 0;  // keeps the sign of tokens above 2^31, whose difference would wrap
  const auto check = [&](std::int32_t token) {
    any |= token;
    below &= (token & kLowBits) - vocabulary;
  };
  check(static_cast<std::int32_t>(window[0]));
  for (std::size_t i = 0; i < sequence; ++i) {
    const auto target = static_cast<std::int32_t>(window[i + 1]);
    tokens[i] = static_cast<std::int32_t>(window[i]);
    targets[i] = target;
    check(target);
  }
  return below < 0 && any >= 0;
}

}  // namespace

bool copy_window(const std::uint16_t* window, std::size_t sequence, std::int32_t vocabulary,
                 std::int32_t* tokens, std::int32_t* targets) {
  return copy_rows(window, sequence, vocabulary, tokens, targets);
}

bool copy_window(const std::uint32_t* window, std::size_t sequence, std::int32_t vocabulary,
                 std::int32_t* tokens, std::int32_t* targets) {
  return copy_rows(window, sequence, vocabulary, tokens, targets);
}

}  // namespace assay::data
