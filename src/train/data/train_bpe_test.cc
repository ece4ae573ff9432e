// Training of byte-pair vocabularies against a literal implementation of the definition: count all
// pairs, merge the best everywhere, again.
#include "train/data/train_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <map>

#include "base/testing/temp_dir.h"
#include "train/data/tiktoken.h"
#include "train/data/word_splitter.h"

namespace assay::data {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<std::string> trained_by_definition(const WordCounts& words,
                                               std::vector<std::string> tokens, std::size_t most) {
  std::map<std::string, TokenId> ids;
  for (TokenId id = 0; id < tokens.size(); ++id) ids[tokens[id]] = id;
  std::vector<std::pair<std::vector<TokenId>, std::uint64_t>> split;
  for (const auto& [word, count] : words) {
    auto& list = split.emplace_back(std::vector<TokenId>(), count).first;
    for (const char byte : word) list.push_back(ids.at(std::string(1, byte)));
  }
  while (tokens.size() < most) {
    std::map<std::pair<TokenId, TokenId>, std::uint64_t> counts;
    for (const auto& [list, count] : split) {
      for (std::size_t i = 0; i + 1 < list.size(); ++i) counts[{list[i], list[i + 1]}] += count;
    }
    if (counts.empty()) break;
    auto best = counts.begin();  // the lowest of the most frequent
    for (auto at = counts.begin(); at != counts.end(); ++at) {
      if (at->second > best->second) best = at;
    }
    const auto [left, right] = best->first;
    const std::string bytes = tokens[left] + tokens[right];
    const auto made = ids.emplace(bytes, static_cast<TokenId>(tokens.size()));
    if (made.second) tokens.push_back(bytes);
    for (auto& [list, count] : split) {
      std::vector<TokenId> merged;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const bool here = i + 1 < list.size() && list[i] == left && list[i + 1] == right;
        merged.push_back(here ? made.first->second : list[i]);
        if (here) ++i;
      }
      list = merged;
    }
  }
  return tokens;
}

RC_GTEST_PROP(TrainBpe, MatchesTheDefinition, ()) {
  WordCounts words;
  const auto count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    const auto word = *rc::gen::container<std::string>(rc::gen::element('a', 'b', ' ', '\xc3'));
    words[word] += *rc::gen::inRange<std::uint64_t>(1, 5);
  }
  const std::vector<std::string> bytes = train_bpe({}, 256);
  const auto most = *rc::gen::inRange<std::size_t>(256, 290);
  RC_ASSERT(train_bpe(words, most) == trained_by_definition(words, bytes, most));
}

TEST(TrainBpe, BytesComeInTheOrderOfTheirSpellings) {
  const std::vector<std::string> bytes = train_bpe({}, 1000);
  ASSERT_EQ(bytes.size(), 256U);
  EXPECT_EQ(bytes[0], "!");
  EXPECT_EQ(bytes[93], "~");
  EXPECT_EQ(bytes[94], "\xa1");
  EXPECT_EQ(bytes[188], std::string(1, '\0'));
  EXPECT_EQ(bytes[220], " ");
}

TEST(TrainBpe, IsReadAsATiktokenFile) {
  const std::vector<std::string> tokens = train_bpe({{"weigh", 3}, {" weighs", 2}}, 261);
  EXPECT_EQ(tokens[259], "weigh");
  EXPECT_EQ(tokens[260], " weigh");
  const auto read = read_tiktoken(tiktoken_text(tokens), "x", {"<|bos|>=261"});
  ASSERT_TRUE(read) << read.error().line();
  ASSERT_EQ(read->spellings.size(), 262U);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(read->spellings[i], tokens[i]);
}

TEST(CountWords, CountsWhatThePatternSplits) {
  const base::testing::MemoryDir directory;
  std::ofstream(directory.path() / "a.txt") << "weigh it, weigh it\n";
  std::ofstream(directory.path() / "b.jsonl")
      << "{\"text\": \"weigh\\u00e9\"}\n{\"text\": \"it\"}\n";
  std::ofstream(directory.path() / "c.txt", std::ios::binary) << "it\xff it";
  const auto splitter = WordSplitter::compile(*split_pattern("llama3"), "x");
  const auto counted =
      count_words(*splitter, {.files = input_files({directory.path()}, {})->files, .threads = 2});
  ASSERT_TRUE(counted) << counted.error().line();
  EXPECT_EQ(counted->documents, 4U);
  EXPECT_EQ(counted->bytes, 19U + 7U + 2U + 6U);
  EXPECT_THAT(counted->words, UnorderedElementsAre(Pair("weigh", 1), Pair(" it", 3), Pair(",", 1),
                                                   Pair(" weigh", 1), Pair("\n", 1),
                                                   Pair("weigh\u00e9", 1), Pair("it", 2)));
}

}  // namespace
}  // namespace assay::data
