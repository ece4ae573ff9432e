// Pair merging against a literal implementation of the definition.
#include "train/data/bpe.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>

namespace assay::data {
namespace {

using Pairs = std::map<std::pair<TokenId, TokenId>, PairTable::Merge>;

// Merges the pair of lowest rank, leftmost first, until there is none.
std::vector<TokenId> merged_by_definition(std::vector<TokenId> tokens, const Pairs& pairs) {
  while (true) {
    std::size_t best = tokens.size();
    PairTable::Merge merge{~0U, 0};
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto found = pairs.find({tokens[i], tokens[i + 1]});
      if (found == pairs.end() || found->second.rank >= merge.rank) continue;
      best = i;
      merge = found->second;
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = merge.result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Few letters and many merges, so that merges compete; some pairs make the same token.
RC_GTEST_PROP(WordMerger, MatchesTheDefinition, ()) {
  std::array<TokenId, 256> byte_ids{};
  std::iota(byte_ids.begin(), byte_ids.end(), 0U);
  const auto count = *rc::gen::inRange<TokenId>(0, 40);
  Pairs pairs;
  PairTable table;
  for (TokenId i = 0; i < count; ++i) {
    const auto any = [&] {
      const auto pick = *rc::gen::inRange<TokenId>(0, 3 + i);
      return pick < 3 ? TokenId{'a'} + pick : 256 + pick - 3;
    };
    const TokenId left = any();
    const TokenId right = any();
    const PairTable::Merge merge{*rc::gen::inRange<std::uint32_t>(0, 30), 256 + i};
    if (!pairs.emplace(std::pair(left, right), merge).second) continue;
    table.add(left, right, merge);
  }
  const auto word = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
  std::vector<TokenId> tokens;
  WordMerger merger;
  merger.merge(byte_ids, table, word, tokens);
  RC_ASSERT(tokens == merged_by_definition(std::vector<TokenId>(word.begin(), word.end()), pairs));
}

TEST(PairTable, FindsWhatWasAddedAndNothingElse) {
  PairTable table;
  for (TokenId i = 0; i < 5000; ++i) table.add(i, i * 7, {i, i + 1});
  table.add(3, 21, {9, 99});
  for (TokenId i = 0; i < 5000; ++i) {
    ASSERT_NE(table.find(i, i * 7), nullptr);
    EXPECT_EQ(table.find(i, i * 7)->result, i == 3 ? 99 : i + 1);
    EXPECT_EQ(table.find(i, i * 7 + 1), nullptr);
  }
}

// Merging a hundred thousand equal letters must not take quadratic time.
TEST(WordMerger, LongWordsAreQuick) {
  std::array<TokenId, 256> byte_ids{};
  std::iota(byte_ids.begin(), byte_ids.end(), 0U);
  PairTable table;
  TokenId token = 'a';
  for (TokenId i = 0; i < 10; ++i) {
    table.add(token, token, {i, 256 + i});
    token = 256 + i;
  }
  std::vector<TokenId> tokens;
  WordMerger().merge(byte_ids, table, std::string(1 << 17, 'a'), tokens);
  EXPECT_EQ(tokens, std::vector<TokenId>(128, 265));
}

}  // namespace
}  // namespace assay::data
