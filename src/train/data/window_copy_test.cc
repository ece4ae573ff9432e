#include "train/data/window_copy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::data {
namespace {

// Their differences with the vocabulary are negative as int32.
TEST(WindowCopy, SeesTokensPastTheRangeOfInt32) {
  for (const std::uint32_t token : {0x7fffffffU, 0x80000000U, 0x80000001U, 0xffffffffU}) {
    for (const std::size_t place : {0U, 3U, 8U}) {
      std::vector<std::uint32_t> window(9, 1);
      window[place] = token;
      std::vector<std::int32_t> row(8);
      std::vector<std::int32_t> targets(8);
      EXPECT_FALSE(copy_window(window.data(), 8, 50, row.data(), targets.data())) << token;
    }
  }
}

RC_GTEST_PROP(WindowCopy, AgreesWithALoop, (std::vector<std::uint32_t> window)) {
  window.push_back(3);
  const auto vocabulary = *rc::gen::inRange<std::int32_t>(1, 1 << 30);
  if (*rc::gen::arbitrary<bool>()) {
    for (auto& token : window) token %= static_cast<std::uint32_t>(vocabulary);
  }
  const bool fits = std::all_of(window.begin(), window.end(), [&](std::uint32_t token) {
    return token < static_cast<std::uint32_t>(vocabulary);
  });
  const std::size_t sequence = window.size() - 1;
  std::vector<std::int32_t> tokens(sequence);
  std::vector<std::int32_t> targets(sequence);
  RC_ASSERT(copy_window(window.data(), sequence, vocabulary, tokens.data(), targets.data()) ==
            fits);
  std::vector<std::uint16_t> narrow(window.begin(), window.end());
  const bool narrow_fits = std::all_of(narrow.begin(), narrow.end(),
                                       [&](std::uint16_t token) { return token < vocabulary; });
  RC_ASSERT(copy_window(narrow.data(), sequence, vocabulary, tokens.data(), targets.data()) ==
            narrow_fits);
  for (std::size_t i = 0; i < sequence; ++i) {
    RC_ASSERT(tokens[i] == narrow[i] && targets[i] == narrow[i + 1]);
  }
}

}  // namespace
}  // namespace assay::data
