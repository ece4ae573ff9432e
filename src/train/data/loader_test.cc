#include "train/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/testing/temp_dir.h"
#include "train/data/shard_writer.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<std::int32_t>>;

class LoaderTest : public ::testing::Test {
 protected:
  // Tokens first, first + 1, …, so that a row shows where it is from.
  std::string counting(const std::string& name, std::uint32_t first, std::uint32_t count,
                       std::uint64_t vocabulary = 1000) const {
    const fs::path path = directory_.path() / name;
    auto writer = ShardWriter::create(path, vocabulary);
    std::vector<std::uint32_t> tokens(count);
    for (std::uint32_t i = 0; i < count; ++i) tokens[i] = first + i;
    EXPECT_TRUE(writer->append(tokens));
    EXPECT_TRUE(writer->finish());
    return path.string();
  }
  // Three shards: 9 + 2 + 0 windows of 4.
  TokenSet set() const {
    auto opened = TokenSet::open(
        {{counting("a.tokens", 0, 38), counting("b.tokens", 500, 9), counting("c.tokens", 700, 4)}},
        4);
    EXPECT_TRUE(opened) << opened.error().line();
    return *std::move(opened);
  }

  base::testing::TempDir directory_;
};

Rows rows_of(const Batch& batch, std::size_t sequence) {
  Rows rows;
  for (std::size_t at = 0; at < batch.tokens.size(); at += sequence) {
    rows.emplace_back(batch.tokens.begin() + static_cast<std::ptrdiff_t>(at),
                      batch.tokens.begin() + static_cast<std::ptrdiff_t>(at + sequence));
    rows.back().push_back(batch.targets[at + sequence - 1]);
  }
  return rows;
}

TEST_F(LoaderTest, WindowsDoNotCrossShards) {
  const TokenSet tokens = set();
  ASSERT_EQ(tokens.windows(), 11U);
  EXPECT_EQ(tokens.tokens(), 51U);
  EXPECT_EQ(tokens.vocabulary(), 1000U);
  const Window last_of_first = tokens.window(8);
  EXPECT_EQ(last_of_first.shard, &tokens.shards()[0]);
  EXPECT_EQ(last_of_first.first, 32U);
  const Window last = tokens.window(10);
  EXPECT_EQ(last.shard, &tokens.shards()[1]);
  EXPECT_EQ(last.first, 4U);
}

TEST_F(LoaderTest, AnEpochReadsEveryWindowOnceWithItsTargets) {
  const TokenSet tokens = set();
  const BatchReader reader(tokens, 5, 1000);
  Batch batch;
  ASSERT_TRUE(reader.read(0, {0, 1, 11}, batch));
  for (std::size_t i = 0; i + 1 < batch.tokens.size(); ++i) {
    EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
  }
  const Rows rows = rows_of(batch, 4);
  std::set<std::int32_t> firsts;
  for (const auto& row : rows) firsts.insert(row.front());
  EXPECT_EQ(firsts, (std::set<std::int32_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 500, 504}));
}

TEST_F(LoaderTest, TheWindowsOfAStepDoNotDependOnTheRanks) {
  const TokenSet tokens = set();
  const BatchReader reader(tokens, 5, 1000);
  // Twelve windows per step, across the end of an epoch, in every factorisation.
  const auto step = [&](std::uint64_t ranks, std::uint64_t micro) {
    Rows rows;
    for (std::uint64_t cursor = 24; cursor < 36; cursor += ranks * micro) {
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        Batch batch;
        EXPECT_TRUE(reader.read(cursor, {rank, ranks, micro}, batch));
        for (auto& row : rows_of(batch, 4)) rows.push_back(std::move(row));
      }
    }
    return rows;
  };
  const Rows alone = step(1, 12);
  ASSERT_EQ(alone.size(), 12U);
  for (const auto& [ranks, micro] : {std::pair{1, 1}, {2, 3}, {3, 4}, {12, 1}, {4, 3}}) {
    EXPECT_EQ(step(static_cast<std::uint64_t>(ranks), static_cast<std::uint64_t>(micro)), alone);
  }
}

// Together, ranks that share windows have all of each, with the targets that a single rank would
// have.
TEST_F(LoaderTest, PartsOfWindowsAreThePiecesOfTheWhole) {
  const TokenSet tokens = set();
  const BatchReader reader(tokens, 3, 1000);
  Batch whole;
  ASSERT_TRUE(reader.read(2, {.rank = 1, .ranks = 2, .micro = 3}, whole));
  for (const std::array<std::uint64_t, 2> from :
       {std::array<std::uint64_t, 2>{0, 3}, std::array<std::uint64_t, 2>{1, 2}}) {
    Batch part;
    ASSERT_TRUE(reader.read(
        2, {.rank = 1, .ranks = 2, .micro = 3, .part = WindowPart{.length = 1, .from = from}},
        part));
    ASSERT_EQ(part.tokens.size(), 6U);
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t piece = 0; piece < 2; ++piece) {
        EXPECT_EQ(part.tokens[row * 2 + piece], whole.tokens[row * 4 + from[piece]]);
        EXPECT_EQ(part.targets[row * 2 + piece], whole.targets[row * 4 + from[piece]]);
      }
    }
  }
}

TEST_F(LoaderTest, ReadsAheadWhatTheReaderReads) {
  const TokenSet tokens = set();
  const BatchReader reader(tokens, 9, 1000);
  const BatchShare share{1, 2, 3};
  for (const std::size_t ahead : {1U, 2U, 7U}) {
    Loader loader(reader, {share, 4, ahead});
    Batch got;
    Batch expected;
    for (std::uint64_t cursor = 4; cursor < 400; cursor += 6) {
      ASSERT_TRUE(loader.next(got));
      ASSERT_TRUE(reader.read(cursor, share, expected));
      EXPECT_EQ(got.cursor, cursor);
      EXPECT_EQ(got.tokens, expected.tokens);
      EXPECT_EQ(got.targets, expected.targets);
    }
  }
}

TEST_F(LoaderTest, EndsWhileItsThreadWaitsOrReads) {
  const TokenSet tokens = set();
  const BatchReader reader(tokens, 9, 1000);
  for (int i = 0; i < 200; ++i) {
    Loader loader(reader, {.share = {0, 1, 2}, .ahead = 2});
    Batch batch;
    for (int taken = 0; taken < i % 4; ++taken) ASSERT_TRUE(loader.next(batch));
  }
}

TEST_F(LoaderTest, ATokenOutsideTheVocabularyIsAnErrorAtItsBatch) {
  const TokenSet tokens = set();
  const BatchReader reader(tokens, 5, 506);  // window 504 … 508 does not fit
  std::uint64_t bad = 0;
  const WindowMix mix(tokens, 5);
  while (tokens.window(mix.at(bad).window).first != 4 ||
         tokens.window(mix.at(bad).window).shard != &tokens.shards()[1]) {
    ++bad;
  }
  Loader loader(reader, {});
  Batch batch;
  for (std::uint64_t i = 0; i < bad; ++i) ASSERT_TRUE(loader.next(batch));
  for (int again = 0; again < 2; ++again) {
    const auto outcome = loader.next(batch);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().where, HasSubstr("b.tokens"));
    EXPECT_THAT(outcome.error().what,
                HasSubstr("byte 268: token 6 is 506, outside the vocabulary of 506"));
  }
}

TEST_F(LoaderTest, SetsAreGivenAsFilesFoldersAndPatterns) {
  const std::string b = counting("b.tokens", 0, 10);
  const std::string a = counting("a.tokens", 0, 10);
  const std::string folder = directory_.path().string();
  const std::vector<std::string> sorted = {a, b};
  EXPECT_EQ(shard_paths({{folder}}), sorted);
  EXPECT_EQ(shard_paths({{folder + "/*.tokens"}}), sorted);
  EXPECT_EQ(shard_paths({{b, folder + "/a.tok*"}}), (std::vector<std::string>{b, a}));
  EXPECT_THAT(shard_paths({{folder}, TokenType::kU16}).error().what,
              HasSubstr("has no files that end in .bin"));
  EXPECT_EQ(shard_paths({{folder + "/*.x"}}).error().what, "matches no file");
}

TEST_F(LoaderTest, TypesMayDifferAndVocabulariesMayNot) {
  const std::string a = counting("a.tokens", 0, 10, 1000);
  const std::string b = counting("b.tokens", 0, 10, 70'000);
  EXPECT_THAT(TokenSet::open({{a, b}}, 4).error().what,
              HasSubstr("has a vocabulary of 70000, but"));
  EXPECT_THAT(TokenSet::open({{a}}, 10).error().what, HasSubstr("no shard has 11 tokens"));
}

}  // namespace
}  // namespace assay::data
